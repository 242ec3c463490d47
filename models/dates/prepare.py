"""Write train.tsv and test.tsv, dates as people write them beside their ISO form, and the two vocabularies.

The dates are days from 1950 to 2049, drawn with a fixed seed; a day of test.tsv is never one of train.tsv.  Where
figures alone could be read in two ways, slashes part month/day/year and dots day.month.year; of a year's last two
figures, 50 to 99 are of the last century.
"""

from datetime import date, timedelta
from pathlib import Path
from random import Random

from recaffe.layers.data.vocabulary import END, PAD, START, Unit, Vocabulary

FOLDER = Path(__file__).parent
FIRST_DAY = date(1950, 1, 1)
DAYS = (date(2050, 1, 1) - FIRST_DAY).days
SEED = 1
TEST_DAYS = 2_000  # each in one form
TRAIN_PAIRS = 60_000  # of the other days

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

FORMS = (
    "{d} {month} {y}",  # 3 March 1994
    "{d} {mon} {y}",  # 3 Mar 1994
    "{d} {mon}. {y}",  # 3 Mar. 1994
    "{d} {mon} '{yy}",  # 3 Mar '94
    "{d}-{mon}-{y}",  # 3-Mar-1994
    "{dd}{mon}{yy}",  # 03Mar94
    "{month} {d}, {y}",  # March 3, 1994
    "{month} {d} {y}",  # March 3 1994
    "{mon} {d}, {y}",  # Mar 3, 1994
    "{month} {nth}, {y}",  # March 3rd, 1994
    "{nth} {month} {y}",  # 3rd March 1994
    "{nth} of {month}, {y}",  # 3rd of March, 1994
    "the {nth} of {month} {y}",  # the 3rd of March 1994
    "{weekday}, {month} {d}, {y}",  # Thursday, March 3, 1994
    "{weekday} {d} {month} {y}",  # Thursday 3 March 1994
    "{wd}, {dd} {mon} {y}",  # Thu, 03 Mar 1994
    "{wd} {mon} {d} {y}",  # Thu Mar 3 1994
    "{m}/{d}/{y}",  # 3/3/1994
    "{mm}/{dd}/{yy}",  # 03/03/94
    "{d}.{m}.{y}",  # 3.3.1994
    "{dd}.{mm}.{yy}",  # 03.03.94
    "{y}/{mm}/{dd}",  # 1994/03/03
    "{y}{mm}{dd}",  # 19940303
    "{y} {month} {d}",  # 1994 March 3
)


def written(day: date, form: str) -> str:
    """The day in that form."""
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    return form.format(
        d=day.day, dd=f"{day.day:02}", nth=ordinal(day.day),
        m=day.month, mm=f"{day.month:02}", month=month, mon=month[:3],
        y=day.year, yy=f"{day.year % 100:02}",
        weekday=weekday, wd=weekday[:3],
    )  # fmt: skip


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ... 11th, ... 21st."""
    ending = "th" if number // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def written_by_hand(day: date, random: Random) -> str:
    """The day in a form drawn at random, now and then in small letters or capitals."""
    text = written(day, random.choice(FORMS))
    return random.choice((text, text, text, text.lower(), text.upper()))


def main() -> None:
    """Write the four files beside this one."""
    random = Random(SEED)
    days = [FIRST_DAY + timedelta(number) for number in random.sample(range(DAYS), DAYS)]
    test, train = days[:TEST_DAYS], random.choices(days[TEST_DAYS:], k=TRAIN_PAIRS)
    letters: set[str] = set()
    for name, drawn in (("test.tsv", test), ("train.tsv", train)):
        pairs = [(written_by_hand(day, random), day.isoformat()) for day in drawn]
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (FOLDER / name).write_text(text, encoding="ascii")
        letters.update(*(source for source, _ in pairs))
        print(f"{FOLDER / name}: {len(pairs)} dates")
    Vocabulary(Unit.CHAR, [PAD, *sorted(letters)]).save(FOLDER / "written.json")
    Vocabulary(Unit.CHAR, [PAD, START, END, *"-0123456789"]).save(FOLDER / "iso.json")


if __name__ == "__main__":
    main()

"""Write a made series of 3,000 days as CSV: the first 2,400 as train.csv, then 600 as test.csv.

value = trend + week + year + weather: a slowly rising line, a fixed pattern of the week, a wave of the year, and noise
of which most stays until the next day.  Nobody can know the new noise of a day: its variance bounds every forecast from
below.
"""

import csv
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
SEED = 0
DAYS, TRAIN_DAYS = 3000, 2400

RISE = 0.002  # a day
WEEK = np.array([0.0, 1.5, 2.0, 1.0, 3.0, -4.0, -3.5])
YEAR = 5.0  # height of the wave
KEPT, NEW_NOISE = 0.7, 1.0  # share of the noise that stays; standard deviation of the new one


def series(rng: np.random.Generator) -> np.ndarray:
    """The value of each day."""
    day = np.arange(DAYS)
    weather = np.zeros(DAYS)
    for t in range(1, DAYS):
        weather[t] = KEPT * weather[t - 1] + NEW_NOISE * rng.standard_normal()
    return 50 + RISE * day + WEEK[day % 7] + YEAR * np.sin(2 * np.pi * day / 365.25) + weather


def main() -> None:
    """Write the two files beside this one."""
    values = series(np.random.default_rng(SEED))
    for name, part in (("train", values[:TRAIN_DAYS]), ("test", values[TRAIN_DAYS:])):
        path = FOLDER / f"{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["value"], *([f"{value:.3f}"] for value in part)])
        print(f"{path}: {len(part)} days")


if __name__ == "__main__":
    main()

"""Write train.h5 and valid.h5: sources of this Python's standard library, and the class of each of their characters.

The files are named here; those that a Python does not have are left out.  The classes are those of `tokenize`, with
keywords apart from other names; whatever is no token is SPACE.  Characters that are not ASCII become question marks.
A file is cut into pieces of whole lines, at most LENGTH characters each.
"""

import keyword
import sysconfig
import tokenize
from collections.abc import Iterator
from io import StringIO
from itertools import accumulate
from pathlib import Path

import h5py
import numpy as np

FOLDER = Path(__file__).parent
LIBRARY = Path(sysconfig.get_path("stdlib"))
LENGTH = 256

CLASSES = ("SPACE", "KEYWORD", "NAME", "NUMBER", "STRING", "COMMENT", "OP")
STRINGS = ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")  # the parts of f-strings, from Python 3.12 on

VALID = "argparse dataclasses heapq http/client json/decoder mailbox textwrap"
TRAIN = """
    ast asyncio/base_events asyncio/streams asyncio/subprocess base64 bdb bisect calendar cmd code collections/__init__
    compileall concurrent/futures/_base configparser contextlib copy csv difflib dis doctest email/header email/message
    email/utils enum filecmp fileinput fractions ftplib functools getopt gettext glob gzip hashlib html/parser
    http/cookiejar http/cookies http/server imaplib inspect ipaddress json/encoder linecache locale logging/__init__
    logging/config logging/handlers mimetypes modulefinder multiprocessing/managers multiprocessing/pool netrc ntpath
    optparse os pdb pickle pickletools pkgutil platform plistlib poplib posixpath pprint profile pstats pyclbr pydoc
    queue random reprlib sched secrets selectors shelve shlex shutil smtplib socket socketserver ssl statistics string
    subprocess symtable tarfile tempfile threading timeit tokenize trace traceback tracemalloc types typing
    unittest/case unittest/loader unittest/mock unittest/suite urllib/parse urllib/request uuid warnings wave weakref
    webbrowser wsgiref/handlers xml/dom/minidom xml/etree/ElementTree xml/sax/saxutils xmlrpc/client xmlrpc/server
    zipapp zipfile
"""


def character_classes(text: str) -> np.ndarray:
    """The number of the class of each character of a Python source text."""
    line_starts = list(accumulate(map(len, StringIO(text)), initial=0))
    classes = np.full(len(text), CLASSES.index("SPACE"), np.uint8)
    for token in tokenize.generate_tokens(StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name in STRINGS:
            name = "STRING"
        elif keyword.iskeyword(token.string):
            name = "KEYWORD"
        if name in CLASSES:
            start, stop = (line_starts[line - 1] + column for line, column in (token.start, token.end))
            classes[start:stop] = CLASSES.index(name)
    return classes


def pieces(text: str) -> Iterator[slice]:
    """Where the text is cut: behind the last line that ends within LENGTH characters, or inside a longer one."""
    start = 0
    while start < len(text):
        stop = start + LENGTH
        if stop < len(text):
            stop = text.rfind("\n", start, stop) + 1 or stop
        yield slice(start, stop)
        start = stop


def write(path: Path, modules: list[str]) -> None:
    """Write the pieces of the modules' files: data and label (pieces x LENGTH), lengths."""
    files = [LIBRARY / f"{module}.py" for module in modules]
    data, labels = [], []
    for text in (file.read_text(encoding="utf-8") for file in files if file.is_file()):
        codes = np.frombuffer(text.encode("ascii", "replace"), np.uint8)
        classes = character_classes(text)
        for piece in pieces(text):
            data.append(codes[piece])
            labels.append(classes[piece])
    with h5py.File(path, "w") as file:
        file["data"], file["label"] = padded(data), padded(labels)
        file["lengths"] = [len(piece) for piece in data]
    print(f"{path}: {sum(map(len, data))} characters in {len(data)} pieces")


def padded(rows: list[np.ndarray]) -> np.ndarray:
    """The rows, each with zeros behind its end."""
    out = np.zeros((len(rows), LENGTH), np.uint8)
    for place, row in zip(out, rows, strict=True):
        place[: len(row)] = row
    return out


def main() -> None:
    """Write both files beside this one."""
    write(FOLDER / "train.h5", TRAIN.split())
    write(FOLDER / "valid.h5", VALID.split())


if __name__ == "__main__":
    main()

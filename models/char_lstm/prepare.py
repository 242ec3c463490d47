"""Write train.txt, valid.txt, test.txt and vocabulary.json from the source files of this Python's standard library.

The files are named here, so every machine with the same Python has the same text; files that a Python does not have
are left out, and characters that are not ASCII become question marks.
"""

import string
import sysconfig
from pathlib import Path

from recaffe.layers.data.vocabulary import Unit, Vocabulary

FOLDER = Path(__file__).parent
LIBRARY = Path(sysconfig.get_path("stdlib"))

# the learning rates are chosen on VALID; TEST is measured once, with the trained nets
VALID = "argparse dataclasses heapq http/client json/decoder mailbox textwrap"
TEST = """
    _collections_abc _strptime email/_parseaddr importlib/metadata/__init__ multiprocessing/heap
    multiprocessing/reduction re/_compiler re/_parser site tomllib/_parser venv/__init__ xml/dom/xmlbuilder
    zoneinfo/_zoneinfo
"""
TRAIN = """
    _pydecimal _pyio ast asyncio/base_events asyncio/events asyncio/futures asyncio/locks asyncio/queues
    asyncio/selector_events asyncio/sslproto asyncio/streams asyncio/subprocess asyncio/tasks asyncio/unix_events
    base64 bdb bisect bz2 calendar cmd code codecs collections/__init__ compileall concurrent/futures/_base
    concurrent/futures/process concurrent/futures/thread configparser contextlib copy csv ctypes/__init__ difflib dis
    doctest email/_header_value_parser email/_policybase email/charset email/contentmanager email/feedparser
    email/generator email/header email/headerregistry email/message email/policy email/utils enum filecmp fileinput
    fractions ftplib functools getopt getpass gettext glob graphlib gzip hashlib hmac html/parser http/cookiejar
    http/cookies http/server imaplib importlib/_bootstrap importlib/_bootstrap_external importlib/util inspect io
    ipaddress json/__init__ json/encoder keyword linecache locale logging/__init__ logging/config logging/handlers
    lzma mimetypes modulefinder multiprocessing/connection multiprocessing/context multiprocessing/managers
    multiprocessing/pool multiprocessing/process multiprocessing/queues multiprocessing/shared_memory
    multiprocessing/synchronize multiprocessing/util netrc ntpath numbers operator optparse os pdb pickle pickletools
    pkgutil platform plistlib poplib posixpath pprint profile pstats pty py_compile pyclbr pydoc queue quopri random
    reprlib rlcompleter runpy sched secrets selectors shelve shlex shutil signal smtplib socket socketserver ssl stat
    statistics string subprocess symtable sysconfig tabnanny tarfile tempfile threading timeit token tokenize trace
    traceback tracemalloc tty turtle types typing unittest/async_case unittest/case unittest/loader unittest/main
    unittest/mock unittest/result unittest/runner unittest/suite unittest/util urllib/error urllib/parse
    urllib/request urllib/response urllib/robotparser uuid warnings wave weakref webbrowser wsgiref/handlers
    wsgiref/simple_server wsgiref/validate xml/dom/expatbuilder xml/dom/minidom xml/dom/pulldom xml/etree/ElementPath
    xml/etree/ElementTree xml/sax/expatreader xml/sax/handler xml/sax/saxutils xml/sax/xmlreader xmlrpc/client
    xmlrpc/server zipapp zipimport
"""


def main() -> None:
    """Write the four files beside this one."""
    for name, modules in (("train.txt", TRAIN), ("valid.txt", VALID), ("test.txt", TEST)):
        paths = [LIBRARY / f"{module}.py" for module in modules.split()]
        texts = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
        data = "".join(texts).encode("ascii", "replace")
        (FOLDER / name).write_bytes(data)
        print(f"{FOLDER / name}: {len(data)} characters of {len(texts)} files")
    Vocabulary(Unit.CHAR, sorted(string.printable)).save(FOLDER / "vocabulary.json")


if __name__ == "__main__":
    main()

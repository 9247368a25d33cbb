#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""usage: python.py FOLDER

Copies this interpreter and the modules that languages.py needs into a folder, for a guest: there
it is FOLDER/bin/python3, with PYTHONHOME=FOLDER. Needs PYTHONPATH and HAMLYN_LIBRARY here.
"""

import pathlib
import shutil
import sys
import sysconfig


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    # Of what can be executed the guest gets the libraries.
    if ".so" in target.suffixes or target.parent.name == "bin":
        target.chmod(0o755)


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) == 2 else 2
    import encodings.latin_1  # noqa: F401 pylint: disable=unused-import,import-outside-toplevel
    import hamlyn  # pylint: disable=import-outside-toplevel
    folder = pathlib.Path(sys.argv[1])
    standard = pathlib.Path(sysconfig.get_path("stdlib"))
    own = pathlib.Path(hamlyn.__file__).parents[1]
    library = folder / "lib" / standard.name
    # Where it looks for the folder of its modules, and would complain.
    (library / "lib-dynload").mkdir(parents=True, exist_ok=True)
    copy(pathlib.Path(sys.executable).resolve(), folder / "bin" / "python3")
    copy(standard / "os.py", library / "os.py")
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None)
        if source is None or module.__name__ == "__main__":
            continue
        source = pathlib.Path(source)
        base = next((base for base in (own, standard) if base in source.parents), None)
        if base is not None and "site-packages" not in source.parts:
            copy(source, library / source.relative_to(base))
    return 0


sys.exit(main())

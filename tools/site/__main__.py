"""Makes the documentation as a site: static HTML that needs no network and no server.

    tools/site [--out DIR]      DIR: build/site without it

The pages are README, CHANGELOG, docs/, the manual pages, and every file of the tree that one of
them links to. A link that leads nowhere, an anchor that does not exist, marks that are not
understood, or anything loaded from elsewhere is an error, and there is no site then. Python's
standard library is enough. contents.py has the navigation.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import build  # noqa: E402
from inline import Wrong  # noqa: E402


def main():
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(prog="tools/site", description=__doc__.split("\n")[0])
    parser.add_argument("--out", metavar="DIR", default=os.path.join(tree, "build", "site"),
                        help="where the site goes (build/site)")
    folder = os.path.abspath(parser.parse_args().out)
    made = folder + ".new"
    try:
        pages = build.build(tree, made)
        # A site that failed leaves the one before it alone.
        if os.path.isdir(folder):
            build.prepare_folder(folder)
            build.remove_folder(folder)
        os.rename(made, folder)
    except Wrong as problem:
        print(f"site: {problem}", file=sys.stderr)
        build.remove_folder(made)
        return 1
    except OSError as problem:
        print(f"site: {problem}", file=sys.stderr)
        return 1
    print(f"site: {pages} pages: {os.path.join(folder, 'index.html')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

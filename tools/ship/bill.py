#!/usr/bin/env python3
"""The software bill of materials of a release: what is linked into it, of which version and under
which licence, as SPDX 2.3 (JSON).

    bill.py BUILD OUT --version 0.3.0 --epoch SECONDS [--static FILE ...] [--other FILE ...]

BUILD is a build folder with HEDDLE_STATIC. What is in it is read from the commands of its links,
and versions and licences from the Debian packages that the archives belong to, so nothing here has
to be kept up to date. A licence that this file does not know stops the release: somebody should
read it.
"""

import argparse
import datetime
import hashlib
import json
from collections import namedtuple
from pathlib import Path
import re
import subprocess
import sys

HEDDLE_LICENCE = "Apache-2.0"
DOC = Path("/usr/share/doc")

# `version` is the upstream one, `package` the Debian package that has the archive, and `debian` the
# version of that.
Component = namedtuple("Component", "package version licence debian copyright_file")

# Debian's names of licences, and SPDX's.
SPDX_NAMES = {
    "APACHE-2-LLVM-EXCEPTIONS": "Apache-2.0 WITH LLVM-exception",
    "Apache-2.0": "Apache-2.0",
    "BSD-2-clause": "BSD-2-Clause",
    "BSD-3-clause": "BSD-3-Clause",
    "BSD-3-clause or GPL-2": "BSD-3-Clause OR GPL-2.0-only",
    "Expat": "MIT",
    "MIT/X11": "X11-distribute-modifications-variant",  # what ncurses calls its own
    "Zlib": "Zlib",
}
# Packages whose copyright files are prose: the source, a sentence that must stand there, licence.
PROSE = {
    "gcc": (r"GCC\s+Runtime\s+Library\s+Exception", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    "glibc": (r"GNU\s+Lesser\s+General\s+Public", "LGPL-2.1-or-later"),
}
# The compiler driver adds these to every link, and no command names them.
OF_EVERY_LINK = ("libgcc.a", "libc_nonshared.a")


class Unknown(Exception):
    """Something is linked that nothing is known of."""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def linked_archives(build, cc="cc"):
    """The archives of others that the links of a build name, as sorted real paths."""
    text = (Path(build) / "build.ninja").read_text(encoding="utf-8")
    found = set()
    for line in text.splitlines():
        if line.lstrip().startswith("LINK_LIBRARIES ="):
            found |= set(re.findall(r"(?<=\s)/\S+\.a(?=\s|$)", line))
    own = str(Path(build).resolve())
    found = {str(Path(name).resolve()) for name in found}
    for name in OF_EVERY_LINK:
        path = run(cc, f"-print-file-name={name}")
        if path.startswith("/"): # newer C libraries have no libc_nonshared.a
            found.add(str(Path(path).resolve()))
    return sorted(name for name in found if not name.startswith(own + "/"))


def owner(path):
    """The Debian package that has a file."""
    try:
        line = run("dpkg-query", "-S", path)
    except (OSError, subprocess.CalledProcessError) as e:
        raise Unknown(f"{path} is linked, but belongs to no Debian package, so neither its version "
                      "nor its licence is known") from e
    return line.split(":", 1)[0].split(",")[0]


def licence_of(source, copyright_file):
    text = copyright_file.read_text(encoding="utf-8", errors="replace")
    for name, (sentence, licence) in PROSE.items():
        if re.fullmatch(name + r"(-[0-9.]+)?", source):
            if not re.search(sentence, text):
                raise Unknown(f"{copyright_file}: the licence is not what it was: {licence}")
            return licence
    # The format of https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
    match = re.search(r"^Files: \*[ \t]*\n(?:.*\n)*?License:[ \t]*(.*)", text, re.MULTILINE)
    name = match[1].strip() if match else ""
    if name not in SPDX_NAMES:
        raise Unknown(f"{copyright_file}: the licence '{name}' is not known to tools/ship/bill.py")
    return SPDX_NAMES[name]


def upstream_version(debian):
    """1.2.13 of 1:1.2.13.dfsg-1."""
    version = debian.split(":", 1)[-1].rsplit("-", 1)[0]
    return re.split(r"\+?~?\.?dfsg|\+ds", version)[0]


def component_of(package):
    name, debian, source = run(
        "dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}\n",
        package).splitlines()[0].split("\t")
    copyright_file = DOC / name / "copyright"
    return Component(name, upstream_version(debian), licence_of(source, copyright_file), debian,
                     copyright_file)


def components(build, cc="cc"):
    """What is linked into the files of a build, sorted by name."""
    return sorted(component_of(package)
                  for package in {owner(path) for path in linked_archives(build, cc)})


def licence_expression(parts):
    """All licences, as SPDX has them: A AND (B OR C)."""
    terms = {HEDDLE_LICENCE} | {part.licence for part in parts}
    return " AND ".join(f"({t})" if " OR " in t else t for t in sorted(terms))


# ---- SPDX ---------------------------------------------------------------------------------------


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", text)


def spdx_package(name, version, licence, **fields):
    return {"SPDXID": spdx_id(f"Package-{name}"), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **fields}


def release_file(path, version, licence):
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return spdx_package(Path(path).name, version, licence, packageFileName=Path(path).name,
                        checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
                        primaryPackagePurpose="INSTALL")


def linked_part(part, machine):
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    version = part.debian.replace(":", "%3A").replace("+", "%2B")
    purl = f"pkg:deb/debian/{part.package.replace('+', '%2B')}@{version}?arch={arch}"
    return spdx_package(part.package, part.version, part.licence,
                        supplier="Organization: Debian",
                        sourceInfo=f"linked from the Debian package {part.package} {part.debian}",
                        primaryPackagePurpose="LIBRARY",
                        externalRefs=[{"referenceCategory": "PACKAGE-MANAGER",
                                       "referenceType": "purl", "referenceLocator": purl}])


def document(parts, version, epoch, machine, static=(), other=()):
    """The bill of a release. `static` are the files that have the parts linked in, and `other` the
    rest; without files, it is that of heddle's own tree, as a wheel has it inside."""
    heddle = spdx_package("heddle", version, HEDDLE_LICENCE, supplier="Organization: heddle",
                          primaryPackagePurpose="APPLICATION")
    all_licences = licence_expression(parts)
    linking = [release_file(path, version, all_licences) for path in static]
    rest = [release_file(path, version, HEDDLE_LICENCE) for path in other]
    linked = [linked_part(part, machine) for part in parts]
    described = linking + rest or [heddle]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", p["SPDXID"]) for p in described]
    relations += [(p["SPDXID"], "GENERATED_FROM", heddle["SPDXID"]) for p in linking + rest]
    relations += [(p["SPDXID"], "STATIC_LINK", part["SPDXID"])
                  for p in linking or [heddle] for part in linked]
    packages = [heddle, *linking, *rest, *linked]
    digest = hashlib.sha256(json.dumps([packages, relations]).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"heddle-{version}-{machine}",
        "documentNamespace": f"https://spdx.org/spdxdocs/heddle-{version}-{digest[:32]}",
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: heddle-bill", "Organization: heddle"]},
        "documentDescribes": [p["SPDXID"] for p in described],
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }


def to_text(bill):
    return json.dumps(bill, indent=1, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("out")
    parser.add_argument("--version", required=True)
    parser.add_argument("--epoch", type=int, required=True, help="date of the release")
    parser.add_argument("--machine", default=run("uname", "-m"))
    parser.add_argument("--static", nargs="*", default=[], metavar="FILE",
                        help="files that have the libraries of BUILD linked in")
    parser.add_argument("--other", nargs="*", default=[], metavar="FILE", help="other files")
    args = parser.parse_args()
    try:
        bill = document(components(args.build), args.version, args.epoch, args.machine,
                        args.static, args.other)
    except Unknown as e:
        sys.exit(f"bill: {e}")
    Path(args.out).write_text(to_text(bill), encoding="utf-8")


if __name__ == "__main__":
    main()

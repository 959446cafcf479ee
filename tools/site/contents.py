"""What is in the site, and in which order: the navigation. A document that no line here names is
put under "More", so that a new page is never missing.

A line is a path or a pattern of paths, in the tree. It may have a name for the navigation after
a blank; otherwise the page's heading is its name.
"""

NAVIGATION = [
    ("Use heddle", [
        ("Start", """
            README.md Overview
            README.zh-CN.md 中文
            docs/tour.md
            docs/wheel.md
            docs/tour.zh-CN.md 命令一览
            docs/comparison.md
            docs/status.md What is missing
            CHANGELOG.md
        """),
        ("Guides", """
            docs/frameworks.md
            docs/python.md
            docs/containers.md
            docs/cudart.md
            docs/reading-a-trace.md
            docs/sharing.md
            docs/snapshots.md
        """),
        ("Commands", """
            docs/man/heddle.1
            docs/man/heddle-run.1
            docs/man/heddle-devices.1
            docs/man/heddle-doctor.1
            docs/man/heddle-trace.1
            docs/man/heddle-cpu.1
            docs/man/heddle-fatbin.1
            docs/man/heddle-sched.1
            docs/man/heddle-snap.1
            docs/man/heddle-migrate.1
            docs/man/heddle.conf.5
        """),
        ("More", ""),
    ]),
    ("Operate it", [
        ("Guides", """
            docs/remote.md
            docs/vm.md
            docs/security.md
            SECURITY.md Reporting a hole
        """),
        ("Commands", """
            docs/man/heddle-serve.1
            docs/man/heddle-cert.1
            docs/man/heddle-vm.1
        """),
    ]),
    ("Develop it", [
        ("Start", """
            CONTRIBUTING.md
            docs/architecture.md
            docs/glossary.md
            docs/releasing.md
            bench/RESULTS.md
        """),
        ("Extend it", """
            docs/adding-a-layer.md
            docs/adding-a-policy.md
            docs/adding-a-transport.md
            docs/adding-an-instruction.md
            examples/README.md
            examples/*/README.md
        """),
        ("Formats", """
            docs/trace-format.md
            docs/snapshot-format.md
            docs/wire.md
        """),
        ("Internals", """
            docs/internals/README.md
            docs/internals/*.md
        """),
        ("Storeys", """
            src/*/README.md
        """),
        ("Decisions", """
            docs/adr/README.md
            docs/adr/*.md
        """),
    ]),
]

# Every file of these kinds is a page even if the navigation does not name it.
WHOLE = ("docs/*.md", "docs/internals/*.md", "docs/adr/*.md", "docs/man/*.[1-9]")
# How much a hit counts in a search, by the group of the page.
WEIGHT = {"Decisions": 0.6, "Internals": 0.75, "Storeys": 0.6, "Formats": 0.8, "Files": 0.5}
PAGE_WEIGHT = {"CHANGELOG.md": 0.4, "README.zh-CN.md": 0.9, "docs/tour.zh-CN.md": 0.8,
               "docs/status.md": 0.8,
               "bench/RESULTS.md": 0.7}

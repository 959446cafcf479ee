#!/usr/bin/env python3
"""Makes the completion of bash, zsh and fish from commands.txt.

    generate.py DEVICES_FOLDER OUT_FOLDER      writes heddle.bash, _heddle and heddle.fish

heddle.bash.in, _heddle.in and heddle.fish.in are the fixed parts: how each kind of value is completed.
Lines @NAME@ in them are replaced by tables.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Settings that are lists, KEY=VALUE,...: the keys of each kind.
LISTS = {
    "sched": "on prio= share= policy= group= scope= deadline_us= hold_us= cap_us= slice_us= batch="
             " batch_wait_us= mode= stream= queue= queues= swap=",
    "sched-set": "policy= prio= share= deadline_us= cap_us= hold_us= slice_us= batch="
                 " batch_wait_us= swap=",
    "ckpt": "on every= keep= dir= zstd= recover recover= wait=",
    "layers": "trace fault watch quota record sched lift",
    "log": "off error warn info debug",
}
# The values of a key of those.
VALUES = {"prio": "high normal low", "mode": "gate record", "stream": "client own", "swap": "on off"}
PLACES = "auto gpu cpu cpu: null shm: unix: tcp:// vm:"
ADDRESSES = "shm: unix: tcp:// vm:"
RESTS = {"program", "none", "file", "process", "guest", "command", "sched-set", "parts"}
KINDS = {"flag", "text", "file", "folder", "gpu", "address", "listen", "user", "group", "setting",
         *LISTS}


class Command:
    def __init__(self, words, rest, text):
        self.words, self.rest, self.text = words, rest, text
        self.options = []  # (names, kind, text)


def read_commands(path):
    commands = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split(" | ")]
            known = KINDS if line.startswith(" ") else RESTS
            if len(fields) != 3 or not (fields[1] in known or is_choice(fields[1], line)):
                sys.exit(f"{path}:{number}: not 'name | kind | text', or an unknown kind")
            if line.startswith(" "):
                commands[-1].options.append((fields[0].split(","), fields[1], fields[2]))
            else:
                commands.append(Command(fields[0], fields[1], fields[2]))
    for command in commands:
        if command.rest != "parts":
            command.options.append((["-h", "--help"], "flag", "show help"))
    return commands


def is_choice(kind, line):
    return line.startswith(" ") and re.fullmatch(r"[a-z0-9_]+(\|[a-z0-9_]+)*", kind) is not None \
        and kind not in RESTS


def long_options(command):
    return [names[-1] for names, _, _ in command.options]


def parts_of(commands, name):
    return [c for c in commands if c.words.startswith(name + " ")]


def devices(folder):
    """The devices that can follow `cpu:`."""
    names = sorted(name[:-len(".json")] for name in os.listdir(folder) if name.endswith(".json"))
    return [name for name in names if name not in ("base", "generic")]


def tops(commands):
    return [c for c in commands if " " not in c.words]


# bash

def bash_tables(commands):
    about, kinds = [], {}
    for c in commands:
        parts = " ".join(p.words.split()[1] for p in parts_of(commands, c.words))
        about.append(f'    "{c.words}") rest={c.rest} parts="{parts}"')
        about.append(f'        options="{" ".join(long_options(c))}" ;;')
        for names, kind, _ in c.options:
            for name in names:
                if kind != "flag":
                    kinds.setdefault(kind, []).append(f'"{c.words} {name}"')
    lines = [f"    {' | '.join(where)}) kind=\"{kind}\" ;;" for kind, where in kinds.items()]
    return {"COMMANDS": " ".join(c.words for c in tops(commands)), "ABOUT": "\n".join(about),
            "KINDS": "\n".join(lines), **shared_tables()}


def shared_tables():
    """Alternatives of `case` in a Bourne shell."""
    keys = "\n".join(f'    {kind}) keys="{text}" ;;' for kind, text in LISTS.items())
    values = "\n".join(f'    {key}) values="{text}" ;;' for key, text in VALUES.items())
    return {"KEYS": keys, "VALUES": values, "PLACES": PLACES, "ADDRESSES": ADDRESSES}


# zsh

def zsh_text(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_action(kind):
    if "|" in kind or kind not in KINDS:
        return f"({kind.replace('|', ' ')})"
    return {"text": " ", "file": "_files", "folder": "_files -/", "user": "_users",
            "group": "_groups"}.get(kind, f"_heddle_{kind.replace('-', '_')}")


def zsh_option(names, kind, text):
    value = "" if kind == "flag" else f":value:{zsh_action(kind)}"
    equals = "" if kind == "flag" else "="
    exclude = f"({' '.join(names)})" if len(names) > 1 else ""
    return [f"'{exclude}{name}{equals if name.startswith('--') else ''}"
            f"[{zsh_text(text)}]{value}'" for name in names]


def zsh_rest(rest):
    return {"program": "'(-)1:program:_command_names -e' '*::arguments:_normal'",
            "file": "'*:file:_files'", "command": "'1:command:_heddle_commands'",
            "guest": "'1:guest:_heddle_guest'", "sched-set": "'1:settings:_heddle_sched_set'",
            "process": "'1:process:_pids'"}.get(rest, "")


def zsh_tables(commands):
    cases = []
    for c in commands:
        if c.rest == "parts":
            continue
        words = [word for option in c.options for word in zsh_option(*option)]
        words += [zsh_rest(c.rest)] if zsh_rest(c.rest) else []
        cases.append(f"    '{c.words}')\n        _arguments -s -S \\\n            "
                     + " \\\n            ".join(words) + " ;;")

    def described(some):
        return "\n".join(f"        '{c.words.split()[-1]}:{zsh_text(c.text)}'" for c in some)
    parts = "\n".join(f"    {c.words}) words_of=(\n{described(parts_of(commands, c.words))}\n"
                      "    ) ;;" for c in commands if c.rest == "parts")
    return {"COMMANDS": described(tops(commands)), "PARTS": parts, "CASES": "\n".join(cases),
            **shared_tables()}


# fish

def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_value(kind):
    if kind == "flag":
        return ""
    if kind == "file":
        return " -r -F"
    if "|" in kind or kind not in KINDS:
        return f" -x -a '{kind.replace('|', ' ')}'"
    actions = {"text": "", "folder": "(__fish_complete_directories)",
               "user": "(__fish_complete_users)", "group": "(__fish_complete_groups)",
               "gpu": "(__heddle_gpus)", "address": ADDRESSES, "listen": ADDRESSES,
               "setting": "(__heddle_settings)"}
    action = actions.get(kind, f"(__heddle_list {LISTS.get(kind, '')})")
    return f" -x -a '{action}'" if action else " -x"


def fish_tables(commands):
    lines = []
    for c in commands:
        words = c.words.split()
        before = "__heddle_at" if len(words) == 1 else f"__heddle_at {words[0]}"
        lines.append(f"complete -c heddle -n '{before}' -a {words[-1]} -d {fish_text(c.text)}")
    for c in commands:
        where = f"-n '__heddle_at {c.words}'"
        for names, kind, text in c.options:
            short = "".join(f" -s {name[1:]}" for name in names if not name.startswith("--"))
            lines.append(f"complete -c heddle {where}{short} -l {names[-1][2:]}{fish_value(kind)}"
                         f" -d {fish_text(text)}")
        rest = {"file": "-F", "program": "-F -a '(__fish_complete_command)'",
                "guest": "-a '(__heddle_guests)'", "process": "-a '(__fish_complete_pids)'",
                "sched-set": f"-a '(__heddle_list {LISTS['sched-set']})'",
                "command": f"-a '{' '.join(t.words for t in tops(commands))} settings'"}
        if c.rest in rest:
            lines.append(f"complete -c heddle {where} {rest[c.rest]}")
    values = "\n".join(f"        case {key}\n            set values {text}"
                       for key, text in VALUES.items())
    return {"LINES": "\n".join(lines), "VALUES": values, "PLACES": PLACES,
            "PARTS": " ".join(c.words for c in commands if c.rest == "parts")}


def write(name, tables, out):
    with open(os.path.join(HERE, name + ".in"), encoding="utf-8") as f:
        text = f.read()
    for key, value in tables.items():
        text = text.replace(f"@{key}@", value)
    left = re.search(r"@[A-Z]+@", text)
    if left:
        sys.exit(f"{name}.in: there is no table {left.group()}")
    with open(os.path.join(out, name), "w", encoding="utf-8") as f:
        f.write(text)


def main(folder, out):
    commands = read_commands(os.path.join(HERE, "commands.txt"))
    found = devices(folder)
    names = {"DEVICES": " ".join(found), "DEVICESFISH": ",".join(found)}
    write("heddle.bash", {**bash_tables(commands), **names}, out)
    write("_heddle", {**zsh_tables(commands), **names}, out)
    write("heddle.fish", {**fish_tables(commands), **names}, out)


if __name__ == "__main__":
    main(*sys.argv[1:])

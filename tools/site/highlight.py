"""Colours for code blocks, few of them: prompts, comments, strings and changes."""

import re

from inline import escape

COMMENT = {
    "sh": r"(?:(?<=\s)|^)#[^\n]*",
    "python": r"#[^\n]*",
    "c": r"/\*.*?\*/|//[^\n]*",
}
STRING = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
SAME = {"bash": "sh", "shell": "sh", "console": "sh", "yaml": "sh", "ini": "sh", "toml": "sh",
        "py": "python", "h": "c", "cu": "c", "cpp": "c", "def": "c", "cmake": "sh"}
# "$ ", "# " of root, or a machine's name before it; guest$, host$.
PROMPT = re.compile(r"^(?:\w+)?[$#] ")


def mark(name, text):
    return f'<span class="{name}">{escape(text)}</span>'


def mark_code(code, pattern, strings):
    """Comments, and strings where they are known to be strings."""
    out, at = [], 0
    names = f"(?P<s>{STRING})|(?P<c>{pattern})" if strings else f"(?P<c>{pattern})"
    for match in re.finditer(names, code, re.DOTALL | re.MULTILINE):
        out.append(escape(code[at:match.start()]))
        out.append(mark(match.lastgroup, match.group()))
        at = match.end()
    return "".join(out) + escape(code[at:])


def mark_console(code):
    """Lines with a prompt are typed; the others are what came back."""
    out = []
    for line in code.split("\n"):
        match = PROMPT.match(line)
        if match:
            rest = mark_code(line[match.end():], COMMENT["sh"], False)
            out.append(mark("p", match.group()) + f"<b>{rest}</b>")
        else:
            out.append(escape(line))
    return "\n".join(out)


def mark_diff(code):
    names = {"+": "i", "-": "d", "@": "c"}
    return "\n".join(mark(names[line[0]], line) if line[:1] in names else escape(line)
                     for line in code.split("\n"))


def code_block(code, language):
    if language == "console":
        shown = mark_console(code)
    elif language == "diff":
        shown = mark_diff(code)
    elif SAME.get(language, language) in COMMENT:
        kind = SAME.get(language, language)
        shown = mark_code(code, COMMENT[kind], kind != "sh")
    else:
        shown = escape(code)
    return f"<pre><code>{shown}</code></pre>"

"""Instructions with carries, borrows, negation, inversion and predicates, and what they mean.

A row has a name, architectures, the bits of the instruction and what it means. The registers are
put in when its place in a kernel is known. What it means is written from the definition, with
Python's numbers, and not from the lifter. An H200 does the same, row by row. It has no sums whose
first two operands are both negated or inverted.
"""

M = 0xffffffff
PT = 7
MARKS = (0xd1d1d1d1, 0xd2d2d2d2)  # in the places of the results before


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


class State:
    """What an instruction reads and writes: four words in, two words and seven predicates out."""

    def __init__(self, words, preds):
        self.a, self.b, self.c, self.d = words
        self.words = list(MARKS)
        self.before = preds
        self.preds = preds

    def p(self, reg, inverted=0):
        return (1 if reg == PT else self.before >> reg & 1) ^ inverted

    def put(self, value):
        self.words[0] = value & M

    def put64(self, value):
        self.words = [value & M, value >> 32 & M]

    def set(self, reg, value):
        if reg != PT:
            self.preds = self.preds & ~(1 << reg) | (1 if value else 0) << reg


rows = []
BOTH = ("sm_80", "sm_90")


def row(name, low, high, meaning, arch=BOTH, uniform=False, wide=False, slow=False, guard=None):
    """guard: (predicate, inverted) of the instruction."""
    guard = guard or (PT, 0)
    low |= guard[0] << 12 | guard[1] << 15

    def guarded(s):
        if s.p(*guard):
            meaning(s)

    rows.append({"name": name, "arch": arch, "low": low, "high": high, "meaning": guarded,
                 "uniform": uniform, "wide": wide, "slow": slow})


def at(bit, value):
    return value << (bit - 64)


def preds(out=PT, out2=PT, into=(PT, 0), into2=(PT, 1)):
    return at(81, out) | at(84, out2) | at(87, into[0] | into[1] << 3) | \
        at(77, into2[0] | into2[1] << 3)


def part(x, negate, invert):
    """A summand, and the one that completes its negation."""
    return (x ^ M if negate or invert else x) + (1 if negate else 0)


# ---- sums --------------------------------------------------------------------------------------

def add3_rows(base, form, uniform, short):
    letters = "ABC"
    imm = 0x80000001 if form == 4 else None
    for x in (0, 1):
        for signs in range(8):
            if signs & 3 == 3 or short and signs not in (0, 1, 2, 4):
                continue
            if form == 4 and signs & 2:
                continue  # an immediate has no sign
            for guard in (None, (3, 0)) if signs == 1 and not uniform else (None,):
                marks = [("~" if x else "-") if signs >> i & 1 else "" for i in range(3)]
                low = base | form << 9 | (signs >> 1 & 1) << 63
                if imm is not None:
                    low |= imm << 32
                high = at(72, signs & 1) | at(74, x) | at(75, signs >> 2) | preds(
                    3, 4, (5, 0) if x else (PT, 1), (6, 1) if x else (PT, 1))

                def meaning(s, x=x, signs=signs, imm=imm):
                    words = [s.a, s.b if imm is None else imm, s.c]
                    total = sum(part(w, not x and signs >> i & 1, x and signs >> i & 1)
                                for i, w in enumerate(words))
                    if x:
                        total += s.p(5) + s.p(6, 1)
                    s.put(total)
                    s.set(3, total >> 32 > 0)
                    s.set(4, total >> 32 > 1)

                row(f"{'U' * uniform}IADD3{'.X' * x} "
                    + ", ".join(m + (n if n != "B" or imm is None else hex(imm))
                                for m, n in zip(marks, letters))
                    + (" @P3" if guard else ""),
                    low, high, meaning, uniform=uniform, guard=guard)


add3_rows(0x010, 1, False, False)
add3_rows(0x010, 4, False, True)
add3_rows(0x090, 1, True, True)


def lea_meaning(s, by, negate_a, negate_b, high, x, sx32):
    whole = s.a
    if sx32:
        whole = signed(s.a) & (1 << 64) - 1
    elif high:
        whole = s.c << 32 | s.a
    whole = whole << by & (1 << 64) - 1
    word = whole >> 32 if high else whole & M
    total = part(word, negate_a and not x, negate_a and x) + \
        part(s.b, negate_b and not x, negate_b and x) + (s.p(5) if x else 0)
    s.put(total)
    s.set(3, total >> 32)


def lea_rows(base, uniform):
    for by in (0, 1, 7, 31):
        for kind in ("", "HI", "HI.SX32"):
            for x in (0, 1):
                for sign in range(3):
                    marks = [("~" if x else "-") if sign >> i & 1 else "" for i in range(2)]
                    name = ".".join(w for w in ("U" * uniform + "LEA", kind, "X" * x) if w)
                    row(f"{name} {marks[0]}A, {marks[1]}B, {by}",
                        base | 1 << 9 | (sign >> 1) << 63,
                        at(72, sign & 1) | at(73, "SX32" in kind) | at(74, x) | at(75, by)
                        | at(80, "HI" in kind) | at(81, 3) | at(87, 5 if x else PT | 8),
                        lambda s, by=by, n=sign & 1, m=sign >> 1, h="HI" in kind, x=x,
                        sx="SX32" in kind: lea_meaning(s, by, n, m, h, x, sx), uniform=uniform)


lea_rows(0x011, False)
lea_rows(0x091, True)


# ---- products ----------------------------------------------------------------------------------

def product(s, is_signed):
    return signed(s.a) * signed(s.b) if is_signed else s.a * s.b


def mad_rows(bases, uniform):
    for base, kind in bases:
        for is_signed in (0, 1):
            for x in (0, 1):
                for negate in (0, 1):
                    def meaning(s, kind=kind, is_signed=is_signed, x=x, negate=negate):
                        p = product(s, is_signed)
                        if kind == "":
                            s.put(p + part(s.c, negate and not x, negate and x)
                                  + (s.p(5) if x else 0))
                            return
                        c = s.d << 32 | s.c
                        all64 = (1 << 64) - 1
                        if negate:
                            c = (c ^ all64) + (0 if x else 1)
                        total = (p & all64) + c + (s.p(5) if x else 0)
                        if kind == "WIDE":
                            s.put64(total)
                        else:
                            s.put(total >> 32)
                        s.set(3, total >> 64)

                    name = "U" * uniform + "IMAD" + ("." + kind if kind else "")
                    row(f"{name}{'' if is_signed else '.U32'}{'.X' * x} A, B, "
                        f"{('~' if x else '-') * negate}C",
                        base | 1 << 9,
                        at(73, is_signed) | at(74, x) | at(75, negate)
                        | at(81, 3 if kind else PT) | at(87, 5 if x else PT | 8),
                        meaning, uniform=uniform, wide=kind == "WIDE")


mad_rows(((0x024, ""), (0x025, "WIDE"), (0x027, "HI")), False)
mad_rows(((0x0a4, ""), (0x0a5, "WIDE")), True)


# ---- comparisons -------------------------------------------------------------------------------

COMPARE = {1: ("LT", lambda a, b: a < b), 2: ("EQ", lambda a, b: a == b),
           3: ("LE", lambda a, b: a <= b), 4: ("GT", lambda a, b: a > b),
           5: ("NE", lambda a, b: a != b), 6: ("GE", lambda a, b: a >= b)}
COMBINE = ((0, "AND", lambda p, q: p and q), (1, "OR", lambda p, q: p or q),
           (2, "XOR", lambda p, q: p != q))


def compare_meaning(s, code, is_signed, ex, combine):
    a, b = (signed(s.a), signed(s.b)) if is_signed else (s.a, s.b)
    test = COMPARE[code][1]
    truth = test(a, b)
    if ex and code == 2:
        truth = a == b and s.p(6)
    elif ex and code == 5:
        truth = a != b or s.p(6)
    elif ex:
        truth = test(a, b) if a != b else bool(s.p(6))
    fold = COMBINE[combine][2]
    s.set(3, fold(bool(truth), bool(s.p(5, 1))))
    s.set(4, fold(not truth, bool(s.p(5, 1))))


for uniform in (False, True):
    for code, (word, _) in COMPARE.items():
        for is_signed in (0, 1):
            for ex in (0, 1):
                for combine, how, _ in COMBINE if code == 1 else COMBINE[:1]:
                    row(f"{'U' * uniform}ISETP.{word}{'' if is_signed else '.U32'}.{how}"
                        f"{'.EX' * ex}", (0x08c if uniform else 0x00c) | 1 << 9,
                        at(72, ex) | at(73, is_signed) | at(74, combine) | at(76, code)
                        | at(81, 3) | at(84, 4) | at(87, 5 | 8) | at(68, 6 if ex else PT),
                        lambda s, c=code, n=is_signed, e=ex, k=combine: compare_meaning(s, c, n, e,
                                                                                        k),
                        uniform=uniform)

for is_signed in (0, 1):
    def least(s, is_signed=is_signed):
        both = sorted((s.a, s.b), key=signed if is_signed else None)
        s.put(both[0] if s.p(5, 1) else both[1])

    for name, base, high, arch in (("IMNMX", 0x017, at(73, is_signed), "sm_80"),
                                   ("VIMNMX", 0x048, at(72, is_signed) | at(81, 0x3f), "sm_90")):
        row(f"{name}{'' if is_signed else '.U32'}", base | 1 << 9, high | at(87, 5 | 8), least,
            arch=(arch,))

for negate in (0, 1):
    row(f"VIADD A, {'-' * negate}B", 0x036 | 1 << 9 | negate << 63, 0,
        lambda s, n=negate: s.put(s.a - s.b if n else s.a + s.b), arch=("sm_90",))
    for is_signed in (0, 1):
        def added(s, negate=negate, is_signed=is_signed):
            both = sorted(((s.a - s.b if negate else s.a + s.b) & M, s.c),
                          key=signed if is_signed else None)
            s.put(both[0] if s.p(5) else both[1])

        row(f"VIADDMNMX{'' if is_signed else '.U32'} A, {'-' * negate}B, C",
            0x046 | 1 << 9 | negate << 63, at(72, is_signed) | at(87, 5), added, arch=("sm_90",))

row("SEL !P5", 0x007 | 1 << 9, at(87, 5 | 8), lambda s: s.put(s.a if s.p(5, 1) else s.b))
row("USEL UP5", 0x087 | 1 << 9, at(87, 5), lambda s: s.put(s.a if s.p(5) else s.b), uniform=True)


# ---- bits --------------------------------------------------------------------------------------

def shift_meaning(s, right, wrap, kind, high):
    wide = kind < 2
    by = s.b & (63 if wide else 31) if wrap else min(s.b, 64 if wide else 32)
    whole = s.c << 32 | s.a
    if right:
        whole = (signed(whole, 64) if kind in (0, 2) else whole) >> by
    else:
        whole <<= by
    s.put(whole >> 32 if high else whole)


for uniform in (False, True):
    for right in (0, 1):
        for wrap in (0, 1):
            for kind, word in enumerate(("S64", "U64", "S32", "U32")):
                for high in (0, 1):
                    row(f"{'U' * uniform}SHF.{'LR'[right]}{'.W' * wrap}.{word}{'.HI' * high}",
                        (0x099 if uniform else 0x019) | 1 << 9,
                        at(73, kind) | at(75, wrap) | at(76, right) | at(80, high),
                        lambda s, r=right, w=wrap, k=kind, h=high: shift_meaning(s, r, w, k, h),
                        uniform=uniform)


def permuted(s, mode):
    source = [(s.c << 32 | s.a) >> 8 * i & 255 for i in range(8)]
    n = s.b & 3
    if mode == 0:
        picks = []
        for i in range(4):
            nibble = s.b >> 4 * i & 15
            byte = source[nibble & 7]
            picks.append((255 if byte >> 7 else 0) if nibble & 8 else byte)
    else:
        picks = [source[i] for i in {
            1: [n, n + 1, n + 2, n + 3], 2: [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
            3: [n] * 4, 4: [max(i, n) for i in range(4)], 5: [min(i, n) for i in range(4)],
            6: [0, 1, 0, 1] if n in (0, 2) else [2, 3, 2, 3]}[mode]]
    s.put(sum(byte << 8 * i for i, byte in enumerate(picks)))


for mode, word in enumerate(("", ".F4E", ".B4E", ".RC8", ".ECL", ".ECR", ".RC16")):
    row(f"PRMT{word}", 0x016 | 1 << 9, at(72, mode), lambda s, m=mode: permuted(s, m))
row("UPRMT", 0x096 | 1 << 9, 0, lambda s: permuted(s, 0), uniform=True)


def looked_up(lut, a, b, c, bits):
    return sum((lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i
               for i in range(bits))


for uniform in (False, True):
    for lut in (0xc0, 0xfc, 0x3c, 0x0f, 0x33, 0x1b, 0xca):
        for both in (0, 1):
            def logic(s, lut=lut, both=both):
                value = looked_up(lut, s.a, s.b, s.c, 32)
                s.put(value)
                s.set(3, (value != 0 and s.p(5, 1)) if both else (value != 0 or s.p(5, 1)))

            row(f"{'U' * uniform}LOP3.LUT{'.PAND' * both} {lut:#x}",
                (0x092 if uniform else 0x012) | 1 << 9,
                at(72, lut) | at(80, both) | at(81, 3) | at(87, 5 | 8), logic,
                uniform=uniform)
    for first, second in ((0x80, 0x08), (0xca, 0x96), (0xfe, 0x01)):
        def pred_logic(s, first=first, second=second):
            into = [s.p(5), s.p(6, 1), s.p(0)]
            s.set(3, looked_up(first, *into, 1))
            s.set(4, looked_up(second, *into, 1))

        row(f"{'U' * uniform}PLOP3.LUT {first:#x}, {second:#x}",
            (0x09c if uniform else 0x01c) | 4 << 9 | second << 16,
            at(64, first & 7) | at(72, first >> 3) | at(81, 3) | at(84, 4) | at(87, 5)
            | at(77, 6 | 8) | at(68, 0), pred_logic, uniform=uniform)


def extended(s, wrap, is_signed):
    n = s.b & 31 if wrap else min(s.b, 32)
    value = s.a & ((1 << n) - 1)
    if is_signed and n:
        value = signed(value, n)
    s.put(value)


def masked(s, wrap):
    first, n = (s.a & 31, s.b & 31) if wrap else (min(s.a, 32), min(s.b, 32))
    s.put(((1 << n) - 1) << first)


for uniform in (False, True):
    for wrap in (0, 1):
        row(f"{'U' * uniform}BMSK{'.W' * wrap}", (0x09b if uniform else 0x01b) | 1 << 9,
            at(75, wrap), lambda s, w=wrap: masked(s, w), uniform=uniform)
        for is_signed in (0, 1):
            row(f"{'U' * uniform}SGXT{'.W' * wrap}{'' if is_signed else '.U32'}",
                (0x09a if uniform else 0x01a) | 1 << 9, at(73, is_signed) | at(75, wrap),
                lambda s, w=wrap, n=is_signed: extended(s, w, n), uniform=uniform)

for invert in (0, 1):
    row(f"POPC {'~' * invert}B", 0x109 | 1 << 9 | invert << 63, 0,
        lambda s, i=invert: s.put(bin(s.b ^ (M if i else 0)).count("1")), slow=True)
    for shift in (0, 1):
        for is_signed in (0, 1):
            def leading(s, invert=invert, shift=shift, is_signed=is_signed):
                x = s.b ^ (M if invert else 0)
                if is_signed and x >> 31:
                    x ^= M
                n = x.bit_length() - 1
                s.put(n if n < 0 or not shift else 31 - n)
                s.set(3, n >= 0)

            row(f"FLO{'' if is_signed else '.U32'}{'.SH' * shift} {'~' * invert}B",
                0x100 | 1 << 9 | invert << 63, at(73, is_signed) | at(74, shift) | at(81, 3),
                leading, slow=True)

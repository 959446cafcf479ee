"""Single and double precision."""

field("scale", 84, None, "D8", "D4", "D2", "", "M2", "M4", "M8")
field("function", 74, "COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH",
      None, None, None, None, None, None)
field("f16", 73, "", "F16")

op(0x020, "2 8 a c", "FMUL.ftz.fmz.scale.round.sat", "Rd, -|A|, -|S|", imm="f32")
op(0x021, "2 4 6 e", "FADD.ftz.round.sat", "Rd, -|A|, -|S|", imm="f32")
op(0x023, "2 4 6 8 a c e", "FFMA.ftz.fmz.round.sat", "Rd, -|A|, -|B|, -|C|", imm="f32")
op(0x008, "2 8 a c", "FSEL.ftz", "Rd, -|A|, -|S|, !P@87", imm="f32")
op(0x009, "2 8 a c", "FMNMX.ftz.nan.xorsign", "Rd, -|A|, -|S|, !P@87", imm="f32")
op(0x00a, "2 8 a c", "FSET.BF.fcmp.ftz.combine", "Rd, -|A|, -|S|, !P@87", imm="f32")
op(0x00b, "2 8 a c", "FSETP.fcmp.ftz.combine", "P@81, P@84, -|A|, -|S|, !P@87", imm="f32")
op(0x102, "3 9 b d", "FCHK", "P@81, -|A|, -|S|", imm="f32")
field("mufu_half", 72, "", "F16", "BF16", None)
for since, until, half in ((75, 89, "f16"), (90, 255, "mufu_half")):
    archs(since, until)
    op(0x108, "3 9 b d", f"MUFU.function.{half}", "Rd, -|S|", imm="f32")
    for code in (6, 7):   # the upper half of a double
        op(0x108, "3 9 b d", f"MUFU.function.{half}", "Rd, -|S|", imm="f64",
           when=f"function={code}")
for half in (1, 2):
    op(0x108, "3 9 b d", "MUFU.function.mufu_half", "Rd, -|S|.half_of", imm="f32",
       when=f"mufu_half={half}", since=90)
archs()
op(0x028, "2 8 a c", "DMUL.round", "Rd, -|A|, -|S|", imm="f64")
op(0x029, "4 6 e", "DADD.round", "Rd, -|A|, -|S|", imm="f64")
op(0x029, "2", "DADD.round", "Rd, -|A|, -|Rc|")
op(0x02b, "2 4 6 8 a c e", "DFMA.round", "Rd, -|A|, -|B|, -|C|", imm="f64")
op(0x02a, "2 4 6 e", "DSETP.dcmp.combine", "P@81, P@84, -|A|, -|S|, !P@87", imm="f64")

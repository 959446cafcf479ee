"""Conversions between types."""

field("pack", 78, "PACK_AB", "MERGE_C")
field("relu_pack", 75, "", "RELU")
field("bf16_pack", 76, "", "BF16")
field("satfinite", 77, "", "SATFINITE")
field("pack_round", 79, "", None, None, "RZ")
field("ntz", 77, "", "NTZ")
field("int_to", 75, None, "F16", "", "F64")
field("int_from", 84, "U8", "U16", "U32", "U64")
field("int_from_signed", 84, "S8", "S16", "", "S64")
field("to_unsigned", 75, "U8", "U16", "U32", "U64")
field("to_signed", 75, "S8", "S16", "", "S64")
field("float_from", 84, None, "F16", "", "F64")
field("byte_from", 60, "", "B1", "B2", "B3")
field("convert_to", 75, None, "F16", "F32", "F64", "BF16", None, None, None)
field("convert_from", 84, None, "F16", "F32", "F64")
field("round_to", 75, None, "F16", "", "F64")
field("clamp_to", 76, "U8", "S8", "U16", "S16")
field("narrow_to", 76, "U8", "S8", "U16", "S16", "U2", "S2", "U4", "S4")
field("byte_to", 76, "U8", "S8", None, None)
field("byte_round", 78, "", None, None, "TRUNC")
field("byte_ntz", 74, "", "NTZ")
field("byte_half", 72, "", "H1")
field("unpack_from", 73, "E5M2", "E4M3")
field("unpack_half", 88, "", "H1")
field("i2fp_to", 75, None, None, "F32", None, None, None, None, None)
field("i2fp_round", 78, "", None, None, "RZ")
raw("to_signed_bit", 72, 1)
raw("from_signed_bit", 74, 1)

PACK = "F2FP.satfinite.relu_pack.bf16_pack.pack.pack_round"
op(0x03e, "2 8 a c", PACK, "Rd, A, S", imm="f32", when="!pack", until=88)
op(0x03e, "2 8 a c", PACK, "Rd, S, Rc", imm="f32", when="pack", until=88)
field("int_to90", 75, None, "F16", "", "F64", "BF16", None, None, None)
field("float_from90", 84, None, "F16", "", "F64", "BF16", None, None, None)
field("convert_from90", 84, None, "F16", "F32", "F64", "BF16", None, None, None)
field("round_to90", 75, None, "F16", "", "F64", "BF16", None, None, None)
for since, until, new in ((75, 89, ""), (90, 255, "90")):
    archs(since, until)
    for code in (0x106, 0x112):
        for what, imm, test in (("int_from", "hex", "!from_signed_bit"),
                                ("int_from_signed", "signed", "from_signed_bit")):
            op(code, "3 9 b d", f"I2F.int_to{new}.{what}.round", "Rd, S.byte_from", imm=imm,
               when=f"{test} int_from=0")
            op(code, "3 9 b d", f"I2F.int_to{new}.{what}.round", "Rd, S.half_of", imm=imm,
               when=f"{test} int_from=1")
            op(code, "3 9 b d", f"I2F.int_to{new}.{what}.round", "Rd, S", imm=imm, when=test)
    halves = (1, 4) if new else (1,)   # the types that a register has two of
    for code in (0x105, 0x111):
        for to, test in (("to_unsigned", "!to_signed_bit"), ("to_signed", "to_signed_bit")):
            name = f"F2I.ftz.{to}.float_from{new}.to_int.ntz"
            op(code, "3 9 b d", name, "Rd, -|S|", imm="f32", when=test)
            for half in halves if new else ():
                op(code, "3 9 b d", name, "Rd, -|S|.half_of", imm="f32",
                   when=f"{test} float_from90={half}")
    for code in (0x104, 0x110):
        name = f"F2F.ftz.convert_to.convert_from{new}.round"
        op(code, "3 9 b d", name, "Rd, -|S|", imm="f32")
        for half in halves:
            op(code, "3 9 b d", name, "Rd, -|S|.half_of", imm="f32",
               when=f"convert_from{new}={half}")
    for code in (0x107, 0x113):
        op(code, "3 9 b d", f"FRND.ftz.round_to{new}.to_int", "Rd, -|S|", imm="f32")
        for half in halves if new else ():
            op(code, "3 9 b d", f"FRND.ftz.round_to{new}.to_int", "Rd, -|S|.half_of", imm="f32",
               when=f"round_to90={half}")
archs()
# Since sm_89 bits 76, 86 and 87 say the result's type; 88..90 and 78 how the sources are arranged.
for wide in range(3):
    for low in range(2):
        kind = (("F16", "BF16"), (None, "TF32"), ("E5M2", "E4M3"))[wide][low]
        if not kind:
            continue
        to, result = f"F2FP.satfinite.relu_pack.{kind}", f"bf16_pack={low} 86:2={wide}"
        for name, test, operands in (("PACK_AB", "!pack 88:3=0", "Rd, A, S"),
                                     ("MERGE_C", "pack 88:3=0", "Rd, S, Rc"),
                                     ("PACK_B", "pack 88:3=2", "Rd, S"),
                                     ("PACK_AB_MERGE_C", "pack 88:3=4", "Rd, A, S, Rc")):
            op(0x03e, "2 8 a c", f"{to}.F32.{name}.pack_round", operands, imm="f32",
               when=f"{result} {test} 73:2=0", since=89)
        op(0x03e, "2 a c", f"{to}.F16.UNPACK_B_MERGE_C.pack_round", "Rd, S, Rc",
           when=f"{result} !pack 88:3=4 73:2=1", since=89)
        op(0x03e, "2 a c", f"{to}.unpack_from.UNPACK_B.pack_round", "Rd, S.unpack_half",
           when=f"{result} !pack 89:2=1 74:1", since=89)
op(0x043, "2 4 6 8 a c e", "F2IP.byte_to.F32.byte_round.byte_ntz.relu_pack",
   "Rd, A, B, C.byte_half", since=86)
for signed in range(2):
    op(0x045, "2 8 a c", f"I2FP.i2fp_to.{'S32' if signed else 'U32'}.i2fp_round", "Rd, S",
       imm="signed" if signed else "hex", when=f"from_signed_bit={signed} 84:2=2", since=86)
op(0x039, "2 4 6 8 a c e", "I2IP.narrow_to.S32.SAT", "Rd, A, B, C", until=89)
op(0x039, "2 4 6 8 a c e", "I2IP.narrow_to.S32.SAT", "Rd, A, B, C", when="74:1", since=90)
op(0x038, "2 8 a c", "I2I.clamp_to.S32.SAT", "Rd, S")

"""Two halves in a register: f16 and bf16."""

field("f32", 78, "", "F32")
field("relu", 79, "", "RELU")
field("bf16_v2", 85, "", "BF16_V2")
field("bf16_set", 65, "", "BF16_V2")
field("bf", 71, "", "BF")
field("h_and", 71, "", "H_AND")

for bf16, imm in ((0, "f16"), (1, "bf16")):
    half_op(0x031, "2 4 6 8 a c e", "HFMA2.bf16_v2.f32.fmz.ftz.relu.sat",
            "Rd, -|A|.h, -|B|.h, -|C|.h, (relu)!P@87?", imm=imm, when=f"bf16_v2={bf16}")
    half_op(0x031, "2 a c", "HFMA2.bf16_v2.f32.fmz.ftz.relu.sat",
            "Rd, -|A|.h, -|B|.nh, -|C|.h, (relu)!P@87?", when=f"bf16_v2={bf16} 86:1", since=86)
    half_op(0x031, "2 4 6 8 a c e", "HFMA2.bf16_v2.f32.OOB.relu.sat",
            "Rd, -|A|.h, -|B|.h, -|C|.h, (relu)!P@87?", imm=imm,
            when=f"bf16_v2={bf16} fmz ftz", since=90)
for since, until, bf16s in ((75, 89, ((0, "f16"),)), (90, 255, ((0, "f16"), (1, "bf16")))):
    archs(since, until)
    for bf16, imm in bf16s:
        v2, set_v2 = (".bf16_v2", ".bf16_set") if since == 90 else ("", "")
        when = f"85:1={bf16}" if since == 90 else ""
        when_set = f"65:1={bf16}" if since == 90 else ""
        half_op(0x035, "2 4 6 8 a c e", f"HFMA2.MMA{v2}.fmz.ftz.relu.sat",
                "Rd, -|A|, -|B|, -|C|, (relu)!P@87?", imm=imm, when=when)
        half_op(0x030, "2 4 6 e", f"HADD2{v2}.f32.ftz.sat", "Rd, -|A|.h, -|S|.h", imm=imm,
                when=when)
        half_op(0x032, "2 8 a c", f"HMUL2{v2}.f32.fmz.ftz.sat", "Rd, -|A|.h, -|S|.h", imm=imm,
                when=when)
        half_op(0x033, "2 4 6 e", f"HSET2{set_v2}.bf.fcmp.ftz.combine2",
                "Rd, -|A|.h, -|S|.h, !P@87", imm=imm, when=when_set)
        half_op(0x034, "2 4 6 e", f"HSETP2{set_v2}.fcmp.h_and.ftz.combine2",
                "P@81, P@84, -|A|.h, -|S|.h, !P@87", imm=imm, when=when_set)
archs()
half_op(0x040, "2 8 a c", "HMNMX2.bf16_v2.f32.ftz.nan.xorsign",
        "Rd, -|A|.h, -|S|.h, !P@87", imm="f16")

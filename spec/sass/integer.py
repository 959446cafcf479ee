"""Integer arithmetic, comparisons, logic, bits, moves and predicates."""

field("pand", 80, "", "PAND")
field("ex", 72, "", "EX")
field("shift_type", 73, "S64", "U64", "S32", "U32")
field("shift_right", 76, "L", "R")
field("sx32", 73, "", "SX32")
field("sh", 74, "", "SH")
field("permute", 72, "", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16")

field("dot_a", 73, "U8", "S8")
field("dot_b", 74, "U8", "S8")
field("dot_a2", 73, "U16", "S16")
field("dot_lo_hi", 77, "LO", "HI")
raw("quad", 72, 4)
raw("a_reg", 24, 8)
raw("b_reg", 32, 8)
raw("c_reg", 64, 8)

MAD = "Rd, P@81?, A, B, -~C, (x)!P@87"
op(0x024, "2 4 6 8 a c e", "IMAD.u32.x", "Rd, A, B, -~C, (x)!P@87", imm="signed")
# Spellings of a product that is only a move, a sum or a shift. Uniform registers do not count.
for zero, forms in (("a_reg=255", "2 4 6 8 a"), ("b_reg=255", "2"), ("c_reg=255", "4 6")):
    op(0x024, forms, "IMAD.MOV.u32", "Rd, A, B, -~C", imm="signed", when=f"!x {zero}")
op(0x024, "8", "IMAD.MOV.u32", "Rd, A, B, -~C", when="!x 32:32=0")
op(0x024, "8", "IMAD.MOV.u32", "Rd, A, B, -~C", when="!x c_reg=255 32:32=1")
op(0x024, "8", "IMAD.IADD.u32", "Rd, A, B, -~C", when="!x a_reg!=255 32:32=1")
for bit in (b for b in range(1, 31) if b != 16):
    op(0x024, "8", "IMAD.SHL.u32", "Rd, A, B, -~C",
       when=f"!x a_reg!=255 c_reg=255 32:32={1 << bit}")
op(0x025, "2 4 6 8 a c e", "IMAD.WIDE.u32.x", MAD, imm="signed")
op(0x027, "2 4 6 8 a c e", "IMAD.HI.u32.x", MAD, imm="signed")
op(0x010, "2 8 a c", "IADD3.x", "Rd, P@81?, P@84?, -~A, -~B, -~C, (x)!P@87, (x)!P@77",
   imm="signed")
op(0x011, "4", "LEA.hi.x", "Rd, P@81?, -~A, B, C, #75:5, (x)!P@87")
op(0x011, "2 8 a c", "LEA.hi.x", "Rd, P@81?, -~A, -~B, #75:5, (x)!P@87", when="!hi")
op(0x011, "2 8 a c", "LEA.hi.x.sx32",
   "Rd, P@81?, -~A, -~B, (!sx32)C, #75:5, (x)!P@87")
op(0x012, "2 8 a c", "LOP3.LUT.pand", "P@81?, Rd, A, B, C, #72:8, !P@87")
op(0x013, "2 8 a c", "IABS", "Rd, S")
op(0x016, "2 4 6 8 a c e", "PRMT.permute", "Rd, A, B, C")
op(0x017, "2 8 a c", "IMNMX.u32", "Rd, A, S, !P@87", imm="signed")
op(0x019, "2 4 6 8 a c e", "SHF.shift_right.wrap.shift_type.hi", "Rd, A, B, C")
op(0x01a, "2 8 a c", "SGXT.wrap.u32", "Rd, A, S")
op(0x01b, "2 8 a c", "BMSK.wrap", "Rd, A, S")
op(0x00c, "2 8 a c", "ISETP.icmp.u32.combine.ex", "P@81, P@84, A, S, !P@87, (ex)!P@68",
   imm="signed")
op(0x007, "2 8 a c", "SEL", "Rd, A, S, !P@87")
op(0x002, "2 8 a c", "MOV", "Rd, S, (quad!=15)#72:4")
op(0x026, "2 4 6 8 a c e", "IDP.4A.dot_a.dot_b", "Rd, A, B, -C", when="!76:1")
op(0x026, "2 4 6 8 a c e", "IDP.2A.dot_lo_hi.dot_a2.dot_b", "Rd, A, B, -C")
op(0x014, "2 4 6 8 a c e", "VABSDIFF.u32", "Rd, A, B, C")
field("u8", 73, "U8", "")
field("acc", 75, "", "ACC")
op(0x015, "2 4 6 8 a c e", "VABSDIFF4.u8.acc", "Rd, P@81?, A, B, C")
op(0x100, "3 9 b d", "FLO.u32.sh", "Rd, P@81?, ~S")
op(0x101, "3 9 b d", "BREV", "Rd, S")
op(0x109, "3 9 b d", "POPC", "Rd, ~S")

# Predicates.
op(0x01c, "8", "PLOP3.LUT", "P@81, P@84, !P@87, !P@77, !P@68, lut, #16:8", when="!67:1")
op(0x01c, "8", "PLOP3.LUT", "P@81, P@84, !P@87, !P@77, !UP@68, lut, #16:8")
field("sign", 80, "SIGN", "SIGN")
op(0x01f, "2", "PLOP3.LUT", "P@81, P@84, A.sign, Rb.sign, Rc.sign, #72:8, #16:8")
op(0x003, "8", "P2R.byte", 'Rd, "PR", A, #32:32')
op(0x004, "8", "R2P", '"PR", A.byte, (32:32!=255)#32:32')

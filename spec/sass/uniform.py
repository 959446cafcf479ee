"""Instructions that run once for the warp, on uniform registers."""

uniform_op(0x090, "2 8", "UIADD3.x", "Rd, P@81?, P@84?, -~A, -~B, -~C, (x)!P@87, (x)!P@77",
           imm="signed")
uniform_op(0x0a4, "2 4 8", "UIMAD.u32.x", "Rd, A, B, -~C, (x)!P@87", imm="signed")
uniform_op(0x0a5, "2 4 8", "UIMAD.WIDE.u32.x", MAD, imm="signed")
uniform_op(0x091, "2 8", "ULEA.hi.x", "Rd, P@81?, -~A, -~B, #75:5, (x)!P@87", when="!hi")
uniform_op(0x091, "2 8", "ULEA.hi.x.sx32", "Rd, P@81?, -~A, -~B, (!sx32)C, #75:5, (x)!P@87")
uniform_op(0x092, "2 8", "ULOP3.LUT.pand", "P@81?, Rd, A, B, C, #72:8, !P@87")
uniform_op(0x096, "2 4 8", "UPRMT", "Rd, A, B, C")
uniform_op(0x099, "2 4 8", "USHF.shift_right.wrap.shift_type.hi", "Rd, A, B, C")
uniform_op(0x09a, "2 8", "USGXT.wrap.u32", "Rd, A, S")
uniform_op(0x09b, "2 8", "UBMSK.wrap", "Rd, A, S")
uniform_op(0x08c, "2 8", "UISETP.icmp.u32.combine.ex", "P@81, P@84, A, S, !P@87, (ex)!P@68",
           imm="signed")
uniform_op(0x087, "2 8", "USEL", "Rd, A, S, !P@87")
uniform_op(0x082, "8 c", "UMOV", "Rd, S")
uniform_op(0x09c, "8", "UPLOP3.LUT", "P@81, P@84, !P@87, !P@77, !P@68, lut, #16:8")
uniform_op(0x083, "8", "UP2UR.byte", 'Rd, "UPR", A, #32:32')
uniform_op(0x0bd, "2", "UFLO.u32.sh", "Rd, P@81?, ~S")
uniform_op(0x0be, "2", "UBREV", "Rd, S")
uniform_op(0x0bf, "2", "UPOPC", "Rd, ~S")
uniform_op(0x0b9, "a", "ULDC.const_size", "Rd, c")
uniform_op(0x0bb, "a", "ULDC.const_size", "Rd, c[UR]")

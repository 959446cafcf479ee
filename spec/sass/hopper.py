"""What sm_90 has beside sm_80: integers in another unit, wider atomics, barriers in shared memory,
bulk copies, and matrix products of four warps."""

archs(since=90)
field("vi16", 73, "", "16x2")
field("vi_type", 72, "U32", "", "U16x2", "S16x2")
field("vi_relu", 76, "", "RELU")
op(0x036, "2 8 c", "VIADD.vi16", "Rd, A, -S")
op(0x048, "2 8 a c", "VIMNMX.vi_type.vi_relu", "Rd, A, S, !P@87", imm="signed")
op(0x00f, "2 4 8 c e", "VIMNMX3.vi_type.vi_relu", "Rd, A, B, C, !P@87")
op(0x046, "2 4 8 c e", "VIADDMNMX.vi_type.vi_relu", "Rd, A, -B, C, !P@87")
uniform_op(0x097, "2 8", "UIADD3.64.x", "Rd, P@81?, P@84?, -~A, -~B, -~C, (x)!P@87, (x)!P@77")

op(0x11b, "9", "ENDCOLLECTIVE", "!P@87?")
op(0x148, "3", "WARPSYNC.COLLECTIVE", "!P@87?, A, ->>34:48", when="86:1 !85:1")
op(0x148, "3", "WARPSYNC.EXCLUSIVE", "!P@87?, A", when="85:1 !86:1")
op(0x148, "3", "WARPSYNC", "!P@87?, A", when="!85:1 !86:1")
op(0x148, "9", "WARPSYNC.ALL", "!P@87?", when="!85:1 !86:1")
op(0x148, "9", "WARPSYNC.COLLECTIVE.ALL", "!P@87?, ->>34:48", when="86:1 !85:1")
op(0x14e, "9", "LEPC", "Rd, ->26:56")
field("ignore_kill", 85, "", "IGNOREKILL")
op(0x02f, "8", "ELECT.ignore_kill", "P@81, UR@16, !P@87")
op(0x02e, "8", "ACQBULK")
op(0x02d, "8", "PREEXIT")
op(0x1ab, "5", "CGAERRBAR")
op(0x1b7, "9", "UTMACMDFLUSH")
op(0x1c7, "9", "UCGABAR_ARV", uniform=True)
op(0x1c7, "d", "UCGABAR_WAIT", uniform=True)
field("view", 72, "S", "G")
op(0x1c6, "3", "FENCE.VIEW.ASYNC.view")

field("atom_type90", 73, "", "S32", "64", "S64", None, None, None, None)
field("float_type", 73, "F16x2.RN", "F16x4.RN", "F16x8.RN", "BF16x2.RN", "BF16x4.RN", "BF16x8.RN",
      None, None, None, "F32.FTZ.RN", "F32x2.FTZ.RN", "F32x4.FTZ.RN", "F32.RN", "F32x2.RN",
      "F32x4.RN", "F64.RN")
field("float_op", 88, "ADD", "MIN", "MAX", None)
op(0x18a, "9", "ATOM.e.atom_op.evict.atom_type90.scope", "P@81, Rd, [global_atomic90], Rb")
op(0x1a8, "9", "ATOMG.e.atom_op.evict.atom_type90.scope", "P@81, Rd, [global_atomic90], Rb")
op(0x18e, "9", "REDG.e.red_op.evict.atom_type90.scope", "[global_red90], Rb")
op(0x1a6, "9", "REDG.e.float_op.evict.float_type.scope", "[global_red90], Rb")
op(0x1a2, "9", "ATOM.e.float_op.evict.float_type.scope", "P@81, Rd, [global_atomic90], Rb")
op(0x1a3, "9", "ATOMG.e.float_op.evict.float_type.scope", "P@81, Rd, [global_atomic90], Rb")
op(0x1a3, "3", "ATOMG.e.float_op.evict.float_type.scope", "P@81, Rd, [plain], Rb")
op(0x044, "8", "STSM.16.layout.matrices", "[plain], Rb")
op(0x18f, "9", "CCTL.e.cache.cache_op", "[global90]")
op(0x1a8, "3", "ATOMG.e.atom_op.evict.atom_type90.scope", "P@81, Rd, [plain], Rb")

# Loads that reduce what several GPUs have at an address.
field("many_op", 87, "ADD", "MIN", "MAX", None, None, "AND", "OR", "XOR",
      None, None, None, None, None, None, None, None)
field("many_type", 73, "32", "S32", "64", "S64", None, None, None, None)
field("many_float_op", 88, "ADD", "MIN", "MAX", "F32ADD")
memory("many", wide=70, ur=64, no_ur=71, descriptor=71, style="with_urz")
op(0x1a4, "9", "LDGMC.e.many_op.many_type.scope", "Rd, [many]")
op(0x1a5, "9", "LDGMC.e.many_float_op.float_type.scope", "Rd, [many]")

# Barriers in shared memory.
field("syncs_try", 72, "", "TRYWAIT")
field("syncs_red", 73, "", "TMASK", "RED", None)
field("syncs_out", 75, "", "OPTOUT")
field("syncs_count", 84, "", "A1T0", "A0T1", "A0TR", "A0TX", "ART0", None, None)
field("arrival", 70, "", "ARVCNT", "TRANSCNT", None)
memory("sync_ur", ur=64)
memory("ur24", reg=NONE, ur=24)
op(0x1a7, "5", "SYNCS.PHASECHK.TRANS64.syncs_try", "P@81, [sync_ur], Rb", when="70:2=1")
op(0x1a7, "9", "SYNCS.ARRIVE.TRANS64.syncs_red.syncs_out.syncs_count", "Rd, [sync_ur], Rb",
   when="70:2=0")
op(0x1b2, "5", "SYNCS.EXCH.64", "UR@16, [ur24], UR@32", uniform=True, when="72:2=1")
op(0x1b2, "9", "SYNCS.LD.64", "UR@16, [ur24]", uniform=True, when="72:2=0")
op(0x1b1, "9", "SYNCS.CCTL.IV", "[sync_ur]", when="91:1 72:1=0")
op(0x1b1, "9", "SYNCS.CCTL.IVALL", when="91:1=0 72:1=0")
op(0x1b0, "9", "ARRIVES.LDGSTSBAR.64.arrival", "[sync_ur]", when="72:4=10")
memory("remote", wide=90, ur=64, style="narrow")
op(0x1bd, "d", "STAS.copy_size", "[remote], Rb")

field("rpc", 31, "Rpc.LO", "Rpc.HI")
op(0x152, "3", "RPCMOV.32", "{rpc}, Rb")
op(0x153, "3", "RPCMOV.32", "Rd, {rpc}")

# Bulk copies.
field("tensor", 79, "1D", "2D", "3D", "4D", "5D", None, None, None)
field("im2col", 82, "", "IM2COL")
field("multicast", 75, "", "MULTICAST")
field("bulk_to", 73, "G", "S")
field("bulk_from", 74, "G", "S")
field("bulk_prefetch", 81, "", "LTC64B", "LTC128B", None)
field("bulk_order", 83, "", "SEQUENCED")
field("bulk_type", 81, "", "S32", "U64", "S64", "F16.RN", "F32.RN", "F32.FTZ.RN", "F64.RN",
      "BF16.RN", None, None, None, None, None, None, None)
field("tensor_cache", 82, "IV", "PF")
memory("ur32", reg=NONE, ur=32, offset=(0, 0))
memory("ur24_only", reg=NONE, ur=24, offset=(0, 0))
BULK = "[ur32], [ur24_only]"
DESC = "(76:1)desc[40]"
uniform_op(0x1b4, "5", "UTMALDG.tensor", f"{BULK}, {DESC}")
uniform_op(0x1b4, "3", "UTMALDG.tensor.im2col.multicast", f"{BULK}, UR@64, {DESC}")
uniform_op(0x1b5, "3", "UTMASTG.tensor.im2col", f"{BULK}, {DESC}")
uniform_op(0x1b6, "3", "UTMAREDG.tensor.im2col.red_op", f"{BULK}, {DESC}")
uniform_op(0x1b8, "5", "UTMAPF.L2.tensor", f"{BULK}, {DESC}")
uniform_op(0x1b9, "9", "UTMACCTL.tensor_cache", "[ur24_only]")
uniform_op(0x1ba, "3", "UBLKCP.bulk_to.bulk_from.multicast.bulk_prefetch.bulk_order",
           f"{BULK}, UR@64, {DESC}")
uniform_op(0x1bb, "3", "UBLKRED.bulk_to.S.red_op.bulk_type", f"{BULK}, UR@64, {DESC}")

# Registers and shared memory of warps and blocks.
uniform_op(0x1c8, "9", "USETMAXREG.DEALLOC.CTAPOOL", "#32:10", when="72:3=5")
uniform_op(0x1c8, "9", "USETMAXREG.TRY_ALLOC.CTAPOOL", "UP@81, #32:10", when="72:3=6")
uniform_op(0x1c9, "9", "USETSHMSZ.FLUSH", when="72:1")
uniform_op(0x1c9, "9", "USETSHMSZ", "#32:20", when="!72:1")

# Matrix products of four warps. Operands in shared memory have a descriptor each.
SIZES = [f"64x{8 * n}x" for n in range(1, 33)]
field("half_shape", 53, *([s + "16" for s in SIZES] + [s + "8" for s in SIZES] + [None] * 64))
field("half_sparse_shape", 53, *([s + "16" for s in SIZES] + [None] * 32 +
                                 [s + "32" for s in SIZES] + [None] * 32))
field("byte_shape", 53, *([s + "32" for s in SIZES] + [None] * 32))
BYTE_SIZES = [8, 16, 24, 32] + list(range(48, 257, 16))
field("int_shape", 53, *(f"64x{BYTE_SIZES[n // 3]}x32" if n % 3 == 0 and n // 3 < len(BYTE_SIZES)
                         else None for n in range(64)))
field("sparse_byte_shape", 53, *([None] * 32 + [s + "64" for s in SIZES]))
field("sparse_int_shape", 53, *(f"64x{BYTE_SIZES[n // 3]}x64"
                                if n % 3 == 1 and n // 3 < len(BYTE_SIZES) else None
                                for n in range(64)))
field("group_f32", 75, "F16", "F32")
field("group_half", 76, "", "BF16", "TF32", None)
field("group_a", 76, "E4M3", "E5M2")
field("group_b", 77, "E4M3", "E5M2")
field("group_int_a", 76, "U8", "S8", None, None)
field("group_int_b", 82, "U8", "S8", None, None)
field("group_sat", 75, "", "SAT")
field("gsb", 84, "gsb0", None, None, None, None, None, None, "")
field("regoffset", 74, "", "REGOFFSET")
TURNS = ["", "tnspA", "tnspB", "tnspA.tnspB"]
TURNS += [("negB." + t).rstrip(".") for t in TURNS]
field("both_turned", 61, *TURNS)
field("both_turned_minus", 61, *[("negA." + t).rstrip(".") for t in TURNS])
field("b_turned", 62, "", "tnspB", "negB", "negB.tnspB")
field("b_minus", 63, "", "negB")
field("b_minus_too", 63, "negA", "negA.negB")
SUM, LAST = "Rc, !UP@87?^", "(gsb!=7){gsb}"
for sparse, name, more in ((0, "HGMMA.half_shape", ""),
                           (1, "HGMMA.SP.regoffset.half_sparse_shape", ", R@40, #48:2")):
    name += ".group_f32.group_half"
    for minus in range(2):
        op(0x1f0, "9", name,
           f"Rd, gdesc[24].both_turned{'_minus' if minus else ''}, {SUM}{more}, {LAST}",
           when=f"73:1={sparse} 72:1={minus}")
    op(0x1f0, "d", name, f"Rd, -A, gdesc[32].b_turned, {SUM}{more}, {LAST}",
       when=f"73:1={sparse}")
for sparse, more, how in ((0, "", ""), (1, ", R@40, #48:2?", "SP.regoffset.sparse_")):
    name = f"QGMMA.{how}byte_shape.group_f32.group_a.group_b"
    for minus, turned in ((0, "b_minus"), (1, "b_minus_too")):
        op(0x1f3, "9", name, f"Rd, gdesc[24].{turned}, {SUM}{more}, {LAST}",
           when=f"73:1={sparse} 72:1={minus}")
    op(0x1f3, "d", name, f"Rd, -A, gdesc[32].b_minus, {SUM}{more}, {LAST}", when=f"73:1={sparse}")
    name = f"IGMMA.{how}int_shape.group_int_a.group_int_b.group_sat"
    op(0x1f1, "9", name, f"Rd, gdesc[24], {SUM}{more}, {LAST}", when=f"73:1={sparse}")
    op(0x1f1, "d", name, f"Rd, A, gdesc[32], {SUM}{more}, {LAST}", when=f"73:1={sparse}")
op(0x1c5, "9", "WARPGROUP.ARRIVE", when="79:2=0")
op(0x1c5, "9", "WARPGROUP.WAIT", when="79:2=1")
op(0x1c5, "9", "WARPGROUP.DEPBAR.LE", "{gsb}, #72:3", when="79:2=2 47:1")

"""Loads, stores, atomics, caches."""

field("bypass", 81, "BYPASS", "")
field("zfill", 82, "", "ZFILL")
field("copy_prefetch", 71, "", "LTC64B", "LTC128B", "LTC256B")
field("copy_size", 73, None, None, None, None, "", "64", "128", None)
field("copy_scope", 77, "", "CONSTANT.PRIVATE", "CONSTANT.CTA", "CONSTANT.CTA.PRIVATE", "CONSTANT",
      "MMIO.CTA", "GPU.PRIVATE", "MMIO.CTA.PRIVATE", "MMIO.SM", "CONSTANT.SM", "MMIO.VC",
      "CONSTANT.SM.PRIVATE", "MMIO.GPU", "CONSTANT.VC", "CONSTANT.VC.PRIVATE", "CONSTANT.GPU")
field("atom_op", 87, "ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "SAFEADD",
      None, None, None, None, None, None)
field("red_op", 87, "ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")
field("atom_type", 73, "", "S32", "64", "F32.FTZ.RN", "F16x2.RN", "S64", "F64.RN",
      None, None, None, None, None, None, None, None, None)
field("shared_type", 73, "", "S32", "64", None)
field("swap", 87, "CAS", "CAST", "CAS", "CAST.SPIN")
field("swap_test", 87, "CAS", "CAST")
field("const_mode", 78, "", "IL", "IS", "ISL")
field("const_size", 73, "U8", "S8", "U16", "S16", "", "64", None, None)
field("matrices", 72, "", "2", "4", None)
field("layout", 78, "M88", "MT88", "M816", "M832")
field("transpose", 78, "MT88", "M832", "M864", None)
field("space", 73, "G", "L", "S", None)
field("cache_op", 87, "PF1", "PF2", "WB", "IV", "IVALL", "RS", "IVALLP", "WBALL")
field("cache", 78, "", "U", "C", "I")
field("fence", 79, "SC", "ALL", "", "MMIO")
field("fence_scope", 76, "CTA", "SM", "GPU", "SYS", None, "VC", None, None)

# The uniform register belongs to the address unless bit 76 or 71 is set; bit 101 makes it a
# descriptor, which is written before the address.
memory("global", wide=90, ur=32, no_ur=76, with_ur=91, descriptor=101)
memory("global_store", wide=90, ur=64, no_ur=76, with_ur=91, descriptor=101)
memory("global_red", wide=90, ur=64, no_ur=71, with_ur=91, descriptor=101)
memory("global_atomic", wide=ALWAYS, ur=64, no_ur=71, descriptor=101)
# Since sm_90 it is a descriptor whenever it does not belong to the address.
memory("global90", wide=90, ur=32, no_ur=76, with_ur=91, descriptor=76,
       style="narrow_zero")
memory("global_store90", wide=90, ur=64, no_ur=76, with_ur=91, descriptor=76,
       style="narrow_zero")
memory("global_red90", wide=90, ur=64, no_ur=71, with_ur=91, descriptor=71,
       style="narrow_zero")
memory("global_atomic90", wide=ALWAYS, ur=64, no_ur=71, descriptor=71)
memory("copy_from_ur90", wide=ALWAYS, ur=64, no_ur=76, offset=(32, 12), descriptor=76)
memory("plain")
memory("plain32", offset=(32, 32))
memory("shared", scale=78)
memory("shared_ur", scale=78, ur=32, with_ur=91)
memory("shared_store_ur", scale=78, ur=64)
memory("local_ur", ur=32, with_ur=91, no_ur=76)
memory("local_store_ur", ur=64, no_ur=76)
memory("matrix_ur", ur=32, with_ur=91)
memory("space_ur", ur=32)
memory("space_ur90", wide=90, ur=32, style="narrow_zero")
memory("copy_to", reg=16, offset=(44, 20))
memory("copy_to_ur", reg=16, ur=64, offset=(44, 20))
memory("copy_from", wide=ALWAYS, offset=(32, 12))
memory("copy_from_ur", wide=ALWAYS, ur=64, no_ur=76, offset=(32, 12))

archs(since=80)
LOAD = "e.evict.prefetch.size.load_scope"
for since, until, new in ((80, 89, ""), (90, 255, "90")):
    archs(since, until)
    op(0x181, "9", f"LDG.{LOAD}", f"P@81?, Rd, [global{new}], !P@64?^")
    op(0x180, "9", f"LD.{LOAD}", f"Rd, [global{new}], !P@64?^")
    op(0x186, "9", "STG.e.evict.size.scope", f"[global_store{new}], Rb")
    op(0x185, "9", "ST.e.evict.size.scope", f"[global_store{new}], Rb")
archs(since=80)
op(0x181, "3", f"LDG.{LOAD}", "P@81?, Rd, [plain], !P@64?^")
op(0x180, "9", f"LD.{LOAD}", "Rd, [plain32], !P@64?^", when="!91:1")
op(0x180, "3", f"LD.{LOAD}", "Rd, [plain], !P@64?^")
op(0x186, "3", "STG.e.evict.size.scope", "[plain], Rb")
op(0x185, "3", "ST.e.evict.size.scope", "[plain32], Rc")
op(0x183, "9", "LDL.evict.size", "Rd, [local_ur]", since=0)
op(0x187, "3", "STL.evict.size", "[plain], Rb", since=0)
op(0x187, "9", "STL.evict.size", "[local_store_ur], Rb", since=0)
op(0x184, "9", "LDS.size", "Rd, [shared_ur]")
archs()
op(0x184, "3", "LDS.size", "Rd, [shared]")
op(0x188, "3", "STS.size", "[shared], Rb")
op(0x188, "9", "STS.size", "[shared_store_ur], Rb")
op(0x182, "b", "LDC.const_size.const_mode", "Rd, c[R]")
op(0x03b, "8", "LDSM.16.layout.matrices", "Rd, [matrix_ur]")
op(0x03a, "2", "MOVM.16.transpose", "Rd, A")
COPY = "LDGSTS.E.bypass.evict.copy_prefetch.copy_size.zfill.copy_scope"
op(0x1ae, "d", COPY, "[copy_to_ur], [copy_from], !P@87?")
op(0x1ae, "f", COPY, "[copy_to], [copy_from_ur], !P@87?", until=89)
op(0x1ae, "f", COPY, "[copy_to], [copy_from_ur90], !P@87?", since=90)
op(0x1af, "9", "LDGDEPBAR")

archs(since=80)
op(0x18a, "9", "ATOM.e.atom_op.evict.atom_type.scope", "P@81, Rd, [global_atomic], Rb",
   until=89)
op(0x18b, "3", "ATOM.e.swap_test.evict.atom_type.scope", "P@81, Rd, [plain], Rb, Rc")
op(0x1a8, "9", "ATOMG.e.atom_op.evict.atom_type.scope", "P@81, Rd, [global_atomic], Rb",
   until=89)
op(0x1a9, "3", "ATOMG.e.swap_test.evict.atom_type.scope", "P@81, Rd, [plain], Rb, Rc")
op(0x18e, "9", "RED.e.red_op.evict.atom_type.scope", "[global_red], Rb", until=89)
archs()
op(0x18c, "3", "ATOMS.atom_op.shared_type", "Rd, [shared], Rb")
op(0x18c, "f", "ATOMS.POPC.INC.32", "Rd, [shared_store_ur]")
op(0x18d, "3", "ATOMS.swap.shared_type", "Rd, [shared], Rb, Rc")
op(0x1aa, "3", "QSPC.e.space", "P@81, Rd, [plain]")
op(0x1aa, "9", "QSPC.e.space", "P@81, Rd, [space_ur]", until=89)
op(0x1aa, "9", "QSPC.e.space", "P@81, Rd, [space_ur90]", since=90)
op(0x18f, "9", "CCTL.e.cache.cache_op", "[global]", since=80, until=89)
for whole in (4, 6, 7):
    op(0x18f, "9", "CCTL.e.cache.cache_op", when=f"cache_op={whole}")
op(0x192, "9", "MEMBAR.fence.fence_scope")
op(0x1ab, "9", "ERRBAR")

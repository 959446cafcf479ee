"""What only sm_75 has: loads, stores and atomics with order and scope apart, without descriptors,
and matrix products in steps."""

field("turing_size", 73, "U8", "S8", "U16", "S16", "", "64", "128", "U.128")
field("turing_type", 73, "", "S32", "64", "F32.FTZ.RN", "F16x2.RN", "S64", "F64.RN", None)
field("turing_load", 79, "CONSTANT", "", "STRONG", "MMIO")
field("turing_store", 79, None, "", "STRONG", "MMIO")
field("turing_atomic", 79, None, "", "STRONG", None)
field("turing_scope", 77, "CTA", "SM", "GPU", "SYS")
field("private", 76, "", "PRIVATE")
field("unordered", 76, "", "U")
memory("turing", wide=90, ur=32, with_ur=91, style="narrow")
memory("turing_store", wide=90, ur=64, with_ur=91, style="narrow")

archs(75, 75)
LOAD_75 = "e.evict.prefetch.turing_size.turing_load.turing_scope.private"
STORE_75 = "e.evict.turing_size.turing_store.turing_scope.private"
ATOMIC_75 = "evict.turing_type.turing_atomic.turing_scope.private"
op(0x181, "9", f"LDG.{LOAD_75}", "P@81?, Rd, [turing], !P@64?^")
op(0x181, "3", f"LDG.{LOAD_75}", "P@81?, Rd, [plain], !P@64?^")
op(0x180, "9", f"LD.{LOAD_75}", "Rd, [turing], !P@64?^", when="91:1")
op(0x180, "9", f"LD.{LOAD_75}", "Rd, [plain32], !P@64?^")
op(0x180, "3", f"LD.{LOAD_75}", "Rd, [plain], !P@64?^")
op(0x186, "9", f"STG.{STORE_75}", "[turing_store], Rb")
op(0x186, "3", f"STG.{STORE_75}", "[plain], Rb")
op(0x185, "9", f"ST.{STORE_75}", "[turing_store], Rb")
op(0x185, "3", f"ST.{STORE_75}", "[plain32], Rc")
op(0x184, "9", "LDS.unordered.size", "Rd, [shared_ur]")
for name, code in (("ATOM", 0x18a), ("ATOMG", 0x1a8)):
    op(code, "9", f"{name}.e.atom_op.{ATOMIC_75}", "P@81, Rd, [turing_store], Rb")
    op(code, "3", f"{name}.e.atom_op.{ATOMIC_75}", "P@81, Rd, [plain], Rb")
    op(code + 1, "3", f"{name}.e.swap_test.{ATOMIC_75}", "P@81, Rd, [plain], Rb, Rc")
op(0x18e, "9", f"RED.e.red_op.{ATOMIC_75}", "[turing_store], Rb")

op(0x18f, "9", "CCTL.e.cache.cache_op", "[plain32]")
for whole in (4, 6, 7):
    op(0x18f, "9", "CCTL.e.cache.cache_op", when=f"cache_op={whole}")
for code, load, place in ((0, "b", FROM), (1, "9", "Rc")):
    op(0x199 + code, load,
       "SULD.D.bytes_apart.surface.evict.size.turing_load.turing_scope.private.outside",
       f"P@81?, Rd, [surface], {place}")
    op(0x19b + code, load,
       "SUST.P.surface.evict.turing_store.turing_scope.private.elements.outside",
       f"[surface], Rb, {place}")
    op(0x19d + code, load,
       "SUST.D.bytes_apart.surface.evict.size.turing_store.turing_scope.private.outside",
       f"[surface], Rb, {place}")

field("step", 79, "STEP0", "STEP1", "STEP2", "STEP3")
field("step_f32", 76, "F16", "F32")
field("step_c_f32", 78, "F16", "F32")
field("a_column", 73, "ROW", "COL")
field("b_column", 74, "ROW", "COL")
op(0x036, "2", "HMMA.884.step_f32.step_c_f32.step.satfinite", "Rd, -A.a_column, -Rb.b_column, Rc")

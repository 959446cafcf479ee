"""Matrix products of a warp."""

field("sp", 73, "", "SP")
field("isp", 72, "", "SP")
field("hmma_f32", 76, "F16", "F32")
field("hmma_in", 82, "", "BF16", "TF32", None)
field("a_layout", 73, "ROW", None)
field("b_layout", 74, None, "COL")
field("a_type", 76, "U8", "S8", None, None)
field("b_type", 78, "U8", "S8", None, None)
field("a_type4", 76, "U4", "S4", None, None)
field("b_type4", 78, "U4", "S4", None, None)
field("imma_sat", 82, "", "SAT")

# Bits 75 and 78 together choose the shape.
for since, until, more in ((75, 85, ""), (86, 255, ", !UP@87?^")):
    archs(since, until)
    for shape, low, high in (("1688", 0, 0), ("16816", 1, 0), ("1684", 0, 1)):
        op(0x03c, "2", f"HMMA.{shape}.hmma_f32.hmma_in", f"Rd, -A, -Rb, Rc{more}",
           when=f"!sp 75:1={low} 78:1={high}")
    for shape, low, high in (("1688", 0, 0), ("16816", 1, 0), ("16832", 1, 1)):
        op(0x03c, "2", f"HMMA.SP.{shape}.hmma_f32.hmma_in", f"Rd, -A, -Rb, Rc{more}, R@40, #48:2",
           when=f"sp 75:1={low} 78:1={high}")
archs()
# Bits 75 and 76 choose the shape.
field("qmma_shape", 75, "16816", "16832", None, None)
field("qmma_sparse_shape", 75, None, "16832", "16864", None)
field("dmma_shape", 76, "8x8x4", "16x8x4", "16x8x8", "16x8x16")
field("qmma_f32", 77, "F16", "F32")
field("qmma_a", 78, "E4M3", "E5M2")
field("qmma_b", 79, "E4M3", "E5M2")
for sparse in range(2):
    op(0x07a, "2", f"QMMA.{'SP.qmma_sparse_shape' if sparse else 'qmma_shape'}"
       ".qmma_f32.qmma_a.qmma_b",
       "Rd, -A.a_layout, -Rb.b_layout, Rc, !UP@87?^" + (", R@40, #48:2" if sparse else ""),
       when=f"80:1={sparse}", since=89)
op(0x03f, "2", "DMMA.884.round", "Rd, -|A|, -|Rb|, -|Rc|", until=89)
op(0x03f, "2", "DMMA.dmma_shape.round", "Rd, -|A|, -|Rb|, -|Rc|, !UP@87?^", since=90)

# Bits 85..86 and 75 choose the shape, 83 and 84 four bits instead of eight.
DENSE = {(0, 0): "8816", (1, 0): "8832", (2, 0): "16816", (3, 0): "16864", (2, 1): "16832"}
SPARSE = {(1, 0): "8832", (3, 0): "16864", (1, 1): "8864", (2, 1): "16832", (3, 1): "168128"}
for sparse, shapes in ((0, DENSE), (1, SPARSE)):
    for (high, low), shape in shapes.items():
        for four in range(4):
            a, b = "a_type4" if four & 1 else "a_type", "b_type4" if four & 2 else "b_type"
            op(0x037, "2", f"IMMA.{'SP.' if sparse else ''}{shape}.{a}.{b}.imma_sat",
               "Rd, A.a_layout, Rb.b_layout, Rc" + (", R@40, #48:2" if sparse else ""),
               when=f"isp={sparse} 75:1={low} 85:2={high} 83:2={four}")

field("bmma_shape", 75, "88128", "168128", "168256", None)
field("bmma_op", 77, "XOR", None, "AND", None)
field("bmma_popc", 80, None, "POPC")
op(0x03d, "2", "BMMA.bmma_shape.bmma_op.bmma_popc", "Rd, A.a_layout, Rb.b_layout, Rc")

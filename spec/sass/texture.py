"""Textures and surfaces.

The object is a word of a constant bank: 54..58 is the bank, 40..53 the word; with .B it is in the
first register of the second group. Coordinates, level and offsets are in two groups of registers;
.SCR divides them evenly. Results are two pairs; the mask says which channels there are.
"""

field("dims", 61, "1D", "2D", "3D", "CUBE", "ARRAY_1D", "ARRAY_2D", None, "ARRAY_CUBE")
field("flat_dims", 61, "1D", "2D", "3D", None, "ARRAY_1D", "ARRAY_2D", None, None)
field("gather_dims", 61, None, "2D", None, "CUBE", None, "ARRAY_2D", None, "ARRAY_CUBE")
field("scr", 60, "", "SCR")
field("bindless", 59, None, "B")
field("not_bindless", 59, "", "B")
field("tex_half", 79, "", "F16.RN", "F16.RZ", None)
field("aoffi", 76, "", "AOFFI")
field("compare", 78, "", "DC")
field("ndv", 77, "", "NDV")
field("clamp_level", 77, "", "CL")
field("samples", 78, "", "MS")
field("gather_offsets", 76, "", "AOFFI", "PTP", None)
field("gradient_dims", 61, "1D", "2D", None, None, "ARRAY_1D", "ARRAY_2D", None, None)
field("nodep", 90, "", "NODEP")
field("tex_level", 87, "", "LZ", "LB", "LL", "LC", "LB.LC", "LC.FDV", None)
field("tld_level", 87, None, "LZ", None, "LL", None, None, None, None)
field("channel", 87, "R", "G", "B", "A")
field("clamp_gradient", 87, "", "LC")
field("query", 62, "TEX_HEADER_DIMENSION", "TEX_HEADER_TEXTURE_TYPE", "TEX_HEADER_SAMPLER_POS",
      None)
raw("channels", 72, 4)

TO, FROM = "P@81?, Rc, Rd, A, Rb?", "#54:5, #40:14"
ALL = "(channels!=15)#72:4"
IN_UR = "UR@40, #46:8, "   # since sm_90
for code, forms, place, b in ((0, "b", f"{FROM}, ", "not_bindless"), (1, "3", "", "bindless"),
                              (0, "f", IN_UR, "not_bindless")):
    archs(since=90 if place == IN_UR else 0)
    op(0x160 + code, forms, f"TEX.scr.{b}.tex_half.tex_level.aoffi.compare.evict.ndv.nodep",
       f"{TO}, {place}{{dims}}, {ALL}")
    op(0x163 + code, forms, f"TLD4.scr.channel.{b}.tex_half.gather_offsets.compare.evict.nodep",
       f"{TO}, {place}{{gather_dims}}, {ALL}")
    op(0x166 + code, forms, f"TLD.scr.{b}.tex_half.tld_level.aoffi.evict.samples.clamp_level.nodep",
       f"{TO}, {place}{{flat_dims}}, {ALL}")
    op(0x16c + code, forms, f"TXD.{b}.tex_half.clamp_gradient.aoffi.evict.nodep",
       f"{TO}, {place}{{gradient_dims}}, {ALL}")
    op(0x16f + code, forms, f"TXQ.{b}.nodep", f"Rc, Rd, A, {{query}}, {place}#72:4")

archs()
field("surface", 61, "1D", "1D_BUFFER", "1D_ARRAY", "2D", "2D_ARRAY", "3D", None, None)
field("bytes_apart", 72, "", "BA")
field("outside", 59, "IGN", "", "TRAP", None)
field("surface_type", 73, "", "S32", "U64", "F32.FTZ.RN", "F16x2.RN", "S64", "SD32", "SD64")
field("elements", 72, None, "R", None, "RG", None, None, None, None, None, None, None, None, None,
      None, None, "")
memory("surface", offset=(0, 0))

for code, load, reduce, place, since in ((0, "b", "5", FROM, 80), (1, "9", "3", "Rc", 80),
                                         (0, "f", "f", IN_UR[:-2], 90)):
    op(0x199 + code, load, "SULD.D.bytes_apart.surface.evict.size.load_scope.outside",
       f"P@81?, Rd, [surface], {place}", since=since)
    op(0x19b + code, load, "SUST.P.surface.evict.scope.elements.outside",
       f"[surface], Rb, {place}", since=since)
    op(0x19d + code, load, "SUST.D.bytes_apart.surface.evict.size.scope.outside",
       f"[surface], Rb, {place}", since=since)
    op(0x19f + code, reduce,
       "SURED.D.bytes_apart.surface.red_op.evict.surface_type.scope.outside",
       f"[surface], Rb, {place}", since=since if since > 80 else 0)

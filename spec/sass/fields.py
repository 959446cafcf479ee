"""Fields that several instructions share: where they are, and how each value is spelled."""

# ---- flags ------------------------------------------------------------------------------------
field("x", 74, "", "X")
field("u32", 73, "U32", "")
field("s32", 73, "", "S32")
field("u64", 73, "", "U64")
field("wrap", 75, "", "W")
field("hi", 80, "", "HI")
field("ftz", 80, "", "FTZ")
field("nan", 81, "", "NAN")
field("xorsign", 82, "", "XORSIGN")   # from sm_86 on
field("sat", 77, "", "SAT")
field("fmz", 76, "", "FMZ")
field("e", 72, "", "E")

# ---- choices ----------------------------------------------------------------------------------
field("round", 78, "", "RM", "RP", "RZ")
field("to_int", 78, "", "FLOOR", "CEIL", "TRUNC")
field("combine", 74, "AND", "OR", "XOR")
field("combine2", 69, "AND", "OR", "XOR")
field("icmp", 76, "F", "LT", "EQ", "LE", "GT", "NE", "GE", "T")
field("fcmp", 76, "F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM",
      "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T")
field("dcmp", 76, "MIN", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM",
      "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "MAX")
field("size", 73, "U8", "S8", "U16", "S16", "", "64", "128")
field("evict", 84, "EF", "", "EL", "LU", "EU", "NA")
field("prefetch", 68, "", "LTC64B", "LTC128B", "LTC256B")
field("byte", 76, "", "B1", "B2", "B3")
field("half_of", 60, "", "H1", None, None)

# Memory order and scope. A load's 4 is the one that differs.
SCOPES = ["", "CONSTANT.PRIVATE", "CONSTANT.CTA", "CONSTANT.CTA.PRIVATE", "STRONG.SM.PRIVATE",
          "STRONG.SM", "STRONG.GPU.PRIVATE", "STRONG.GPU", "MMIO.GPU", "CONSTANT.SM", "STRONG.SYS",
          "CONSTANT.SM.PRIVATE", "MMIO.SYS", "CONSTANT.VC", "CONSTANT.VC.PRIVATE", "CONSTANT.GPU"]
field("scope", 77, *SCOPES)
field("load_scope", 77, *(SCOPES[:4] + ["CONSTANT"] + SCOPES[5:]))

# ---- special registers --------------------------------------------------------------------------
field("special", 72, *specials({
    0: "LANEID", 1: "CLOCK", 2: "VIRTCFG", 3: "VIRTID", 15: "ORDERING_TICKET", 16: "PRIM_TYPE",
    17: "INVOCATION_ID", 18: "Y_DIRECTION", 19: "THREAD_KILL", 21: "DIRECTCBEWRITEADDRESSLOW",
    22: "DIRECTCBEWRITEADDRESSHIGH", 23: "DIRECTCBEWRITEENABLED", 24: "SW_SCRATCH",
    25: "MACHINE_ID_1", 26: "MACHINE_ID_2", 27: "MACHINE_ID_3", 28: "AFFINITY",
    29: "INVOCATION_INFO", 30: "WSCALEFACTOR_XY", 31: "WSCALEFACTOR_Z", 32: "TID", 33: "TID.X",
    34: "TID.Y", 35: "TID.Z", 37: "CTAID.X", 38: "CTAID.Y", 39: "CTAID.Z", 40: "NTID",
    41: "CirQueueIncrMinusOne", 42: "NLATC", 44: "SM_SPA_VERSION", 45: "MULTIPASSSHADERINFO",
    46: "LWINHI", 47: "SWINHI", 48: "SWINLO", 49: "SWINSZ", 50: "SMEMSZ", 51: "SMEMBANKS",
    52: "LWINLO", 53: "LWINSZ", 54: "LMEMLOSZ", 55: "LMEMHIOFF", 56: "EQMASK", 57: "LTMASK",
    58: "LEMASK", 59: "GTMASK", 60: "GEMASK", 61: "REGALLOC", 62: "BARRIERALLOC",
    64: "GLOBALERRORSTATUS", 66: "WARPERRORSTATUS", 67: "VIRTUALSMID", 68: "VIRTUALENGINEID",
    80: "CLOCKLO", 81: "CLOCKHI", 82: "GLOBALTIMERLO", 83: "GLOBALTIMERHI", 84: "ESR_PC",
    85: "ESR_PC_HI", 96: "HWTASKID", 97: "CIRCULARQUEUEENTRYINDEX",
    98: "CIRCULARQUEUEENTRYADDRESSLOW", 99: "CIRCULARQUEUEENTRYADDRESSHIGH", 100: "PM0",
    101: "PM_HI0", 102: "PM1", 103: "PM_HI1", 104: "PM2", 105: "PM_HI2", 106: "PM3", 107: "PM_HI3",
    108: "PM4", 109: "PM_HI4", 110: "PM5", 111: "PM_HI5", 112: "PM6", 113: "PM_HI6", 114: "PM7",
    115: "PM_HI7", 116: "SNAP_PM0", 117: "SNAP_PM_HI0", 118: "SNAP_PM1", 119: "SNAP_PM_HI1",
    120: "SNAP_PM2", 121: "SNAP_PM_HI2", 122: "SNAP_PM3", 123: "SNAP_PM_HI3", 124: "SNAP_PM4",
    125: "SNAP_PM_HI4", 126: "SNAP_PM5", 127: "SNAP_PM_HI5", 128: "SNAP_PM6", 129: "SNAP_PM_HI6",
    130: "SNAP_PM7", 131: "SNAP_PM_HI7", 132: "VARIABLE_RATE",
    136: "CgaCtaId"},
    others={20: "SM_SHADER_TYPE", 133: "__HIR0X000", 255: "SRZ"}))

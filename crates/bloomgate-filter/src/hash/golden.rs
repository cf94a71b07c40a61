//! Golden vectors of the keyed hashes.
//!
//! Computed with independent implementations: HKDF with Python's `hmac`, SipHash-1-3 from the
//! paper, XXH3-128 with the reference C library 0.8.1, AES-128-CMAC with OpenSSL 3.0. The secret is
//! the bytes 0 to 31, the nonce the bytes 100 to 115; byte `i` of the key of length `len` is `7 i +
//! 13 len + 1` modulo 256. Each entry: length, block, bits.

/// SipHash-1-3.
pub(super) const SIPHASH13: &[(usize, u64, u64)] = &[
    (0, 0x3eb0_bfb0_b0f8_1885, 0x8ce4_4ca7_7d45_6359),
    (1, 0xf36f_e7b9_b0ad_193d, 0x5929_630a_106e_d0d4),
    (2, 0x882a_6edd_c785_fe39, 0xfa06_e525_917d_52b4),
    (3, 0x8207_b376_6b11_baf5, 0x0421_6b69_8848_3bbf),
    (4, 0xf1ec_7e34_0e63_502a, 0xf358_6f14_87c1_5076),
    (5, 0x9b87_2cfd_60b9_cf6b, 0x002e_e703_45c1_534e),
    (7, 0x2082_5c67_a7a2_1d28, 0x9090_52c1_c71d_9f7b),
    (8, 0xe28f_5a5b_6a1e_b9f9, 0x168f_abd4_090e_244a),
    (9, 0x2773_f966_8549_9760, 0x9cfb_65ce_63d1_ee7e),
    (12, 0x5d50_dc11_a200_af04, 0x9422_92aa_9869_9cb9),
    (15, 0xd872_d886_70d0_7f52, 0x6c4c_e935_4dea_7464),
    (16, 0x4e78_125d_fa41_7e50, 0x0299_b494_47ce_2911),
    (17, 0xc219_c203_0020_6a51, 0xba5e_e0d0_31f6_86ba),
    (24, 0x1eef_985c_adaa_f796, 0xae99_edf1_dd3c_0392),
    (31, 0xc613_d54d_0897_e55f, 0x4500_b47a_cb54_a97a),
    (32, 0xa23e_3824_11cf_78e3, 0xafe3_f3da_10b0_b453),
    (33, 0x27b4_ec8b_82dc_3107, 0xa66b_27f7_db61_fc7c),
    (48, 0x0d0d_40e4_7a30_d018, 0x89df_e154_871e_f4ac),
    (64, 0xf017_c440_bb34_208b, 0x8a90_0e3f_6472_18a7),
    (65, 0x13c4_82ae_bc7f_6c46, 0x94ab_aaf3_9932_f908),
    (96, 0xebd1_b54a_c6ee_566d, 0xe4d1_2957_aa8a_8633),
    (127, 0xcbef_8b7e_07fc_33f6, 0x5dcd_44c7_1a50_0328),
    (128, 0x1b66_663d_6d3d_703e, 0x0e46_e1c9_ae00_423f),
    (129, 0xcec5_fcc5_5b23_f531, 0xbc85_6993_a539_0104),
    (192, 0xcbc5_1715_fd02_53bb, 0x4b80_bbb0_2fe8_ea46),
    (239, 0xe3bc_9796_c635_0e37, 0xdf8f_64d6_023d_9635),
    (240, 0x5809_8370_8c66_2a3a, 0x230e_8ce4_288c_bb12),
    (241, 0x42d9_e144_2daf_a954, 0xe60a_2a1b_343b_a950),
    (255, 0x5d21_def3_830e_b577, 0x04ef_400f_c21f_c1d4),
    (256, 0x20d5_547e_a97f_405a, 0xa475_f63b_5b1d_16f4),
    (257, 0x7ac4_cf46_9b67_9d6e, 0x126b_dbfb_35c1_1d48),
    (300, 0xdfa5_20de_bfe7_062b, 0x8f5b_015d_be1d_de19),
];

/// The hashes of all lengths from 0 to 300, folded into one number.
pub(super) const SIPHASH13_FOLD: u64 = 0xbc92_72d9_e251_2b30;

/// XXH3-128.
pub(super) const XXH3: &[(usize, u64, u64)] = &[
    (0, 0x8947_fad3_3aa8_e169, 0x2b40_34be_0bf1_e7d8),
    (1, 0x2564_36a4_64bb_d192, 0x0e92_fd49_d757_f665),
    (2, 0x159b_abd5_5f55_c494, 0xe4e2_3862_c905_f295),
    (3, 0xeb8c_1163_686d_287f, 0x7c1b_e9d9_a544_c3d3),
    (4, 0xc691_d947_6538_0663, 0x29f7_c8c7_643a_1d35),
    (5, 0x2db0_86c1_02e7_6d3c, 0x0f2c_1dcc_faf6_4530),
    (7, 0xe070_7de0_0101_981d, 0x1a99_d776_215d_de64),
    (8, 0x5b9d_592b_e61b_33af, 0x699d_85e9_947b_4e93),
    (9, 0xd1cc_d356_473f_b81b, 0x1ef0_f082_a4b1_3941),
    (12, 0xf69e_1b09_76b9_7a69, 0x9530_32c5_47e1_1973),
    (15, 0x5a38_6cdb_8880_d254, 0x06bd_cfd9_27cd_f8a2),
    (16, 0xec03_c858_4bbb_0204, 0x9b7f_e24e_b1cd_a5a0),
    (17, 0x22b5_a00d_d1aa_b578, 0xa774_85f0_e55c_bca8),
    (24, 0xbb24_299c_0c93_2781, 0xbe91_40d3_f20b_4740),
    (31, 0xe1e3_649d_e462_69a5, 0xc53f_b0ba_63eb_23c0),
    (32, 0x1921_c93b_ac3c_9a35, 0xbef2_0e74_6ae4_5123),
    (33, 0x8c64_915d_4a48_7b4f, 0xdacc_1675_7543_68e2),
    (48, 0xf8a6_540c_5f1d_a837, 0x7b4c_1d14_19a8_9f15),
    (64, 0x5774_47bb_acb9_e0f5, 0x0e38_65d5_0171_01b2),
    (65, 0x4bbf_612b_b979_500a, 0xf350_66db_857b_efd6),
    (96, 0xed3e_7308_c2c5_4f1f, 0x1609_53a4_3750_e2bb),
    (127, 0x888d_2f24_b3da_5700, 0x219f_0a6b_20e9_8e40),
    (128, 0xef1d_c3c4_6f3f_8da6, 0x4a9e_cf5a_8dbb_4b5c),
    (129, 0xced2_0521_7103_4e9c, 0x8a7b_15eb_2964_07e9),
    (192, 0xfd8b_c1ea_14e9_c706, 0x713f_3eba_0e0c_cbcb),
    (239, 0x0580_0040_0998_e81b, 0xdef0_88db_2941_ea82),
    (240, 0xd568_15bb_7c5f_7f9f, 0x439b_bfcc_b436_1af6),
    (241, 0x8041_0d92_a989_0193, 0x96ab_a08f_3820_24ea),
    (255, 0x179a_db80_8f1a_ecba, 0x6dde_fb44_5ffc_5ea3),
    (256, 0xb9b8_89da_67dc_b83d, 0x8870_8100_e387_8eb3),
    (257, 0x74df_4a6b_cbed_cbdd, 0xc501_d38e_c1f3_3421),
    (300, 0x6ea6_58b3_7188_8fa1, 0x8781_ea93_b779_f443),
];

/// The hashes of all lengths from 0 to 300, folded into one number.
pub(super) const XXH3_FOLD: u64 = 0xa063_a91e_5674_a2fa;

/// AES-128-CMAC.
pub(super) const AES128: &[(usize, u64, u64)] = &[
    (0, 0xa517_8235_58c2_8de5, 0x0672_3783_8513_8fa1),
    (1, 0xbe7c_afa9_45f5_2b16, 0xb9fd_7538_555b_8f1f),
    (2, 0xaad5_4712_b155_c52a, 0xd0f5_b1ca_3290_42d6),
    (3, 0xec37_5975_b540_c346, 0xd317_f00b_dace_99e3),
    (4, 0x2a6a_3bf0_b847_a005, 0x4659_7276_9efa_8373),
    (5, 0x925b_7ce9_bf0b_fc48, 0xb4e7_915b_e41a_0c1e),
    (7, 0x22f3_6acf_5647_7823, 0xb238_6671_5852_297d),
    (8, 0x77d2_0848_32ac_ad02, 0xa56e_b10f_bc43_6b13),
    (9, 0x4236_aab2_b6a8_ce87, 0x268e_c44f_d18f_70a7),
    (12, 0xeb58_02b1_6580_8e59, 0x6b9a_4352_077c_d0dd),
    (15, 0x16fd_cdba_d657_75a8, 0x1d19_11ae_7cb3_5dde),
    (16, 0xae9e_f92d_2c04_6636, 0x67e9_8ae0_9e07_96e2),
    (17, 0x2161_ea40_5f23_e750, 0x4e26_745f_6f15_8d3d),
    (24, 0x3e73_e587_1858_45e4, 0x2bf8_c0d4_842f_7af1),
    (31, 0x3045_e9a4_c32c_dbc2, 0x4ba0_13ef_ee3b_98d0),
    (32, 0x6859_5e50_a9f1_53a0, 0xeb0f_5058_c019_1f2b),
    (33, 0x69f1_0073_1711_a05d, 0x81ae_cbc2_6e13_88f4),
    (48, 0x3c6a_7845_fba2_4e57, 0xd72b_a288_bced_0df3),
    (64, 0x25ae_19f2_11c6_1e39, 0x1f05_b723_f74d_df4f),
    (65, 0xa735_3680_4717_7e9c, 0x4491_320a_7027_e9b3),
    (96, 0xf11f_64ea_7780_ab2f, 0x58fb_f2e5_d7b1_1009),
    (127, 0x8526_ce72_3738_4a48, 0x07c2_74c9_895a_3c52),
    (128, 0xf965_3085_6c31_030c, 0x51be_f9b7_918e_fb0c),
    (129, 0x6d8c_e54f_90a3_00bb, 0xfa86_fbfe_e8ef_14ba),
    (192, 0xa261_ae51_b663_6755, 0x6c2c_5a7f_b144_58d0),
    (239, 0x58ca_f95b_aebf_6ed1, 0xe890_f61e_bdb6_5ed5),
    (240, 0x721f_078b_d81e_64cd, 0x0d01_4759_cf46_0b2d),
    (241, 0xdf45_a7d1_bbed_7548, 0xedae_b941_ec2b_b639),
    (255, 0x60ff_040e_a5d8_91d5, 0xb2c8_fa7b_42f7_7868),
    (256, 0x088a_c611_c674_0c82, 0xc9e9_1507_d646_90be),
    (257, 0x56f1_2c61_4c41_7701, 0x28e4_5aee_57d0_2457),
    (300, 0xad7d_7c99_5230_9da7, 0x5186_bff0_1bf0_d155),
];

/// The hashes of all lengths from 0 to 300, folded into one number.
pub(super) const AES128_FOLD: u64 = 0x6604_10d6_211c_613f;

/// The fingerprint of the secret.
pub(super) const FINGERPRINT: [u8; 8] = [0x8c, 0x32, 0x96, 0xd2, 0x35, 0x57, 0x4a, 0x4d];

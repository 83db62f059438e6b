"""Names, sizes in bytes and sha256 of the files of the public data sets; made from their own list.

`CONTENTS` has the sha256 of what is in a file that others compress otherwise: with that it is whole, too.
"""

__all__ = ["CONTENTS", "FILES"]

FILES: dict[str, tuple[int, str]] = {
    "bandits/adult.csv.gz": (602916, "fbfd5774d1c107366c5fcb3f0317586726c37cc93abf13dff629000f0bc2d666"),
    "bandits/jester5k.npz": (720325, "e39be7faee044890aa59e4ca51351d37ddb3d1cd846acdf1031dd6ef43ee72d1"),
    "bandits/mushroom.csv.gz": (29655, "29895d104a4ff53a67635ae0b456b7fd40f05f3858233cbd45965abd2301608d"),
    "bandits/showdown_covertype.npz": (158711, "de86ae5be2f5e75c884140ee1c54a8c9ef9b4ecbce7d7f76edfe0641ea60e6b5"),
    "bandits/showdown_stock.npz": (491396, "375f38821e1cf35722980587b2b72ccba4348d3ac5bb3538e3872c21c88e74c6"),
    "bandits/statlog_shuttle.csv.gz": (439758, "2405300d45321b1761f84e6f25d568602111fb3b9c498444ec65e2211a5165ed"),
    "electricity_postcovid/actuals_2017_2020.csv.gz": (
        785493,
        "df403719186e7e034d5df15cfec88ea5ae5061f4df00bee5230f9d8b757f5d09",
    ),
    "electricity_postcovid/weather_forecasts_2017_2020.csv.gz": (
        226252,
        "3004fade1813aa35db32faf2a6470e2147516423c0ecd40edeb732bdb81a6510",
    ),
    "fashion_mnist/t10k-images-idx3-ubyte.gz": (
        4422102,
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    ),
    "fashion_mnist/t10k-labels-idx1-ubyte.gz": (
        5148,
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
    "fashion_mnist/train-images-idx3-ubyte.gz": (
        26421880,
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    ),
    "fashion_mnist/train-labels-idx1-ubyte.gz": (
        29515,
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    ),
    "finance/djia_close_1885_2023.csv.gz": (212544, "c8f54f9a976be6adc6fc4fdcc4fa03278a3e5864cc03ba80b925f5a105ef4416"),
    "finance/djia_daily_ohlcv_1992_2026.csv.gz": (
        184279,
        "125064b874f39b143dcb40a89f553736df2b1f17777c62ce31812ac9a53436e8",
    ),
    "finance/sp500_20_stocks_daily_1990_2022.csv.gz": (
        455490,
        "c1b8295cc5317ef6800a5408d66ca7df1945090edf58563dd7866e48fffe66c8",
    ),
    "finance/sp500_index_daily_1990_2022.csv.gz": (
        47334,
        "736f2c71ec7d34540a93daadb2d70faca83b28f632ae2adcfb95025c2e616dd6",
    ),
    "mnist/t10k-images-idx3-ubyte.gz": (1602050, "5634745efa576a17e7d4cf5cd9d09123c75e6538e5114267c2d156edaf519341"),
    "mnist/t10k-labels-idx1-ubyte.gz": (4517, "ae18e77e031ccde52407f794d123116439864147d33ac992975f85dd4dc42af6"),
    "mnist/train-images-idx3-ubyte.gz": (9630610, "71524e2cd1ad2968737f7f2f2ff69cbfc32df8ccddff51593f7cb2d4e0eb5b64"),
    "mnist/train-labels-idx1-ubyte.gz": (28878, "fe03b8bd7915f70bf5aa08be480aa413fbd85afcaa58b35d230d335f284fd88e"),
    "streams/elec2.csv.gz": (690606, "aa06ea3d1ac9c7ad7412e9252674fb020044134ed4c98377c100cd9f66c25c96"),
    "streams/keystroke.csv.gz": (36784, "946e2526c2ed9c78d82795367f322f1f4d893c0ce4bda4ec38f9ce46ac8d616d"),
    "streams/noaa_weather.csv.gz": (231928, "cf316589b421424f673717d866b37c27e6d433bb8fe7b98a0364711327bc7531"),
    "streams/nycflights13.csv.gz": (6078571, "199b025e98548d2bb634b583d14f7f47dc01b84ef30c6bde4a0d91618a8bdf40"),
    "streams/outdoor_objects.csv.gz": (200666, "aacaf0f365676631d12c77ba34c76f96e5b4dd40c88dd76c1cf9b507f94b1d9d"),
    "streams/phishing.csv.gz": (3971, "ac7fd6188d534ded7ca2f6f42fd05440130b34c3e09bd9b2c6b764d72cda0663"),
    "streams/trump_approval.csv.gz": (10602, "a64eccf2c37021f62ce08b7a79083a7ac469998bcd2fcda1bee156e47ec57bca"),
    "tcpd/annotations.json": (7268, "532bedc29837086a024cf680213afaa832ecdf3d6b1763ae9ad89181fd85227d"),
    "tcpd/series/bank.json": (18004, "e00567946a10dfae6f118dc22f2290dd7065cf40c093e4e61853201999537676"),
    "tcpd/series/brent_spot.json": (18192, "42d54b2793bd38bf22461422edabf5db83065306959c4fe3d9e0dc2658c09672"),
    "tcpd/series/businv.json": (11648, "6184899278eac04b79cce34db7a4d555ae6d68306e6061d6831bf84866246fad"),
    "tcpd/series/centralia.json": (674, "420579f393ad4213a51c1a750c6da57ddc10be929380b26ed56719623f8bbe18"),
    "tcpd/series/children_per_woman.json": (8835, "2400bb7ebe59f8a16ae47d6802a097ed0ea94be2fd42cdd33e01e9a82cb96367"),
    "tcpd/series/co2_canada.json": (6508, "7caa7401c17a0d7359033854a3b47146d5927f39365e2675c69a4765649876ef"),
    "tcpd/series/construction.json": (10710, "c1da31f779e2fb6d99b4b2a2260c1bf0aa0fe4cbf57da0ab84e777df5d411a53"),
    "tcpd/series/debt_ireland.json": (953, "25e873421f4346b8c7c7abf1453bf540858f9c73941d1d6e251ffef473d43314"),
    "tcpd/series/gdp_argentina.json": (2552, "f1d341fd4a94cdc5420cdd2e0b18c72f71dc656af72f57632d88bfb5b3270987"),
    "tcpd/series/gdp_croatia.json": (1112, "95f183f7a8470581d1d3a19f5ee3bdc3b2bed7c0021377b3fa91783f28adbb2d"),
    "tcpd/series/gdp_iran.json": (2678, "c3cd3409aeaed76242f90e43d1c152de9bdb6bdf3887c87ddffa8eedd3ae9369"),
    "tcpd/series/gdp_japan.json": (2480, "bdfad153aac7ba895f9049271eca56ee1cf64059b9108447def3cc0cd2af5f9a"),
    "tcpd/series/global_co2.json": (5016, "5dbca226c7c5d9079893f719eee5952e9e262a7c0623b212f2b7eb7e213d13b2"),
    "tcpd/series/homeruns.json": (3516, "ab91df278d1a1682a2449cb6c4d914b7fa0fe6c45ff9ccc54f3a42a0a3941508"),
    "tcpd/series/jfk_passengers.json": (16540, "53f5b2495ad7596cb5511e9f0470db185bcda0a798c68565150c7be1f95edb7b"),
    "tcpd/series/lga_passengers.json": (16546, "88fe23ccba28838de840469a76c2a3af49a5e341c8c00c6fc830a1fc530aa98a"),
    "tcpd/series/nile.json": (2979, "1d3bd0c3d8b4cbb5d1368aa1128d59631cfc71889f110def34ec42ba91ec9103"),
    "tcpd/series/ozone.json": (1891, "9f3981dab7bb4b288ee852dbb1f53ff24d388cb5e926c4542efd2ae8af2036a4"),
    "tcpd/series/quality_control_1.json": (10011, "faee7c4134fdea29cf5ab5b9a9884240622cf6f0c548a8605097aacc7ded2a62"),
    "tcpd/series/quality_control_2.json": (9218, "2cca35f891c9966c6fe98faf5b51249898de4ac2761b2f810f6ca7d956d4c316"),
    "tcpd/series/quality_control_3.json": (11845, "6bdaf41f2d48015b7c922318f36dffece6934f2353fab9e324ee5f70f321e989"),
    "tcpd/series/quality_control_4.json": (15977, "82a20f938daa891430e2970b852bd36f2708137f64c6f66a9922d5f65582e383"),
    "tcpd/series/quality_control_5.json": (10718, "da1d721d3e3a70b0843c10512f25222358f8c9563a7d96a72e54b7f17164097c"),
    "tcpd/series/rail_lines.json": (1675, "628ed2ef53e7123bd98a3d171d34f70404a70c720081036bb2b3cab03f8a9d57"),
    "tcpd/series/run_log.json": (23935, "6d70ba6dde16e29609283fe8ebfaf3e03048f0e44493809e4f496bc1b89a6f65"),
    "tcpd/series/seatbelts.json": (6277, "aacf93cbd3b41bba6d7fe9855172a0a54b5d2a605ba0998b29e4e6823804a11f"),
    "tcpd/series/shanghai_license.json": (6940, "476c83d07f29815b08bde4a8e6bfdb60336f82b5314c9c5930e43c8646f04113"),
    "tcpd/series/uk_coal_employ.json": (3341, "88cda80d4e9c1ce534fe6a278c09f4878e48495ecfe1233a99ad6c26b65edcee"),
    "tcpd/series/unemployment_nl.json": (9149, "cc4621436e4ed21982eb3ed6cac07bdb41cc37e4f33845cf9bbcf6690c4ff6bb"),
    "tcpd/series/us_population.json": (31972, "7c440060003ada87981c252a2b462d2516d3e69c03a09dd85dcd0d08e20cdcf4"),
    "tcpd/series/usd_isk.json": (11946, "4946c5cfc5b8de43c3c06676a37cd6e86df2ee953777ac72534522be42ef11a2"),
    "tcpd/series/well_log.json": (14926, "522f44890ebb7a07b0654eb3b50afdfd783cc8883f37d93b127763415005d96e"),
    "tcpd/series_not_redistributed_by_tcpd/apple.json": (
        33134,
        "f55af0868f72fcf6bc388066cb1a84813fdc439c823831a8d3da8d333b2de4e3",
    ),
    "tcpd/series_not_redistributed_by_tcpd/bee_waggle_6.json": (
        58109,
        "d96b2cbba3d0ba59ef782ea58b793e94509d255ce7005b1b21bcff07924be8c1",
    ),
    "tcpd/series_not_redistributed_by_tcpd/bitcoin.json": (
        31851,
        "bce25dc7ad16bfdab605a0f6af6575586068b2e90b0b7e4847e1d94b117bc379",
    ),
    "tcpd/series_not_redistributed_by_tcpd/iceland_tourism.json": (
        6756,
        "54e81bed811f5a97fd2696c6b137655e8ec7c7ed997e3c1aa9391d36af2e22dd",
    ),
    "tcpd/series_not_redistributed_by_tcpd/measles.json": (
        34094,
        "12d615740adb65d96509d91e24a60665ab9b6550410efdfa6438cdba477c3f05",
    ),
    "tcpd/series_not_redistributed_by_tcpd/occupancy.json": (
        40943,
        "9e6917b55219c778a59a4f3486600673cc2ff3f97de912091d2bd12636997611",
    ),
    "tcpd/series_not_redistributed_by_tcpd/ratner_stock.json": (
        23080,
        "a6e005e640ad9e7f2d3ff495cec490a6d8498dbbf56ae8916915765207336ef0",
    ),
    "tcpd/series_not_redistributed_by_tcpd/robocalls.json": (
        2150,
        "197ad01b042c94cead612f1c949814b900338beab5b284beb58fe95329e9f922",
    ),
    "tcpd/series_not_redistributed_by_tcpd/scanline_126007.json": (
        7968,
        "9ff57097a207de7b464b86b861b6e7356c4928d96fcdc9103b1e53b61b1f774b",
    ),
    "tcpd/series_not_redistributed_by_tcpd/scanline_42049.json": (
        8150,
        "bab0ed7e630d6fa51a507fdc015a282f250dfd4ffdccfb22f4fce83eef0c945e",
    ),
    "uci/boston.csv.gz": (11732, "e98ba6587053e569e636033afe62303fbf17b43fcbd1baeafbd96e955d334df4"),
    "uci/concrete.csv.gz": (10384, "09dcacc81321f0ad0308f8bdf5b6daaefee110088e5c27848d21620ecf0e6ba9"),
    "uci/energy.csv.gz": (3962, "cb123ba92141c4ef40534913e5e05fc2dfb41c407e555e20bca1bb893f0c70e1"),
    "uci/index.json": (2263, "d401f98b482a87230072604003ddd66799f7fe51bd10bf121527b6d1141ef1de"),
    "uci/kin8nm.csv.gz": (355708, "0bfc160393b078105a841ad00b321b03d5799b7600ec1b5a4f774ed93761bf40"),
    "uci/naval.csv.gz": (406970, "bb1e9bebf275101d594e3360486f5b1899068f58749e49b0a1571560fdaf8bdb"),
    "uci/power.csv.gz": (113872, "038099e4d53a98d4cb679c1e5f98545a5d7bc14d7518e33baa226c2da630d7cc"),
    "uci/protein.csv.gz": (1671788, "edfebc132b616b92c91122838f3acef5ab92bdb64bd36d93971552b4270a595c"),
    "uci/wine_red.csv.gz": (23197, "cbad2c9caff088a381c9182f80056a9d2209e8cf09ad1631d1f53fcbb82ef7b3"),
    "uci/yacht.csv.gz": (1694, "16979c3c8cba146e233de0b172a56329846f53e15ae494eb4113ec2dd25dca2f"),
    "well_log.csv.gz": (13933, "b6afc3cd825ac36c0a22fb46b312c5fc55a8f5628332f2a598879a86946e3408"),
}

CONTENTS: dict[str, str] = {
    "bandits/adult.csv.gz": "c6c77bfbd8b6c387f5e508860cdc6595f3522e645be92e9d55612bbf046829f9",
    "bandits/mushroom.csv.gz": "5a2f9eaf7c33feaacea4e5a76278083f3c016c7bb7d4d6cd3064b2ec23d81695",
    "bandits/statlog_shuttle.csv.gz": "bc530f06d2d44f15104222aed2277cedc3e50247e119a39fa717300a250aa5d3",
    "electricity_postcovid/actuals_2017_2020.csv.gz": (
        "e3f5504b04b487fca30b2fa31891bae9d05831a1b00e9d68d3a0cfd263bf0fdb"
    ),
    "electricity_postcovid/weather_forecasts_2017_2020.csv.gz": (
        "ec1189cb5aa2863b70a807e717f54ba2b68410faf3ad683ad878b39f0c822b43"
    ),
    "finance/djia_close_1885_2023.csv.gz": "97450ad6d95a1cac84d2e3a5815b64ee4141135c69feb50cdb006ac03c25e06a",
    "finance/djia_daily_ohlcv_1992_2026.csv.gz": "4b853c4e8f0be0f5f413fea20634bea1f95f76892d6635358d4a9821fc029cb8",
    "finance/sp500_20_stocks_daily_1990_2022.csv.gz": (
        "8849845acc0209a54516aa8e219fa629bd4cb0718759e0d1fda0df9647fd97b7"
    ),
    "finance/sp500_index_daily_1990_2022.csv.gz": "1ecfef6bbde3e0bc998361248dbdf5a53bfd086498a24c0dff01347ba5c2694c",
    "mnist/t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "mnist/t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    "mnist/train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "mnist/train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "streams/elec2.csv.gz": "e007ac5cdd690b61795bfeae01f357c789224d5eb3b0f08cce7d25215f08e79a",
    "streams/keystroke.csv.gz": "60a8ba9b6987866debd48495fc3d8c0750d756f367207cf1702eafd467090d86",
    "streams/noaa_weather.csv.gz": "720fe40bfde237910583718d0b007eb57811a8c73230958add9469478d38899d",
    "streams/nycflights13.csv.gz": "c4bc7941496413e00ed589c04adb7b5e8c127213cb6cd6507fd215b6ebe0debc",
    "streams/outdoor_objects.csv.gz": "eb41e93eb7fd5dee3d31bf00dcbf01c986eef9b6924a4053ac8128c63abb4905",
    "streams/phishing.csv.gz": "cfe77f0b77dd706ac5491842d7ad787c80b5805eb315a47a4b89d0172c760fca",
    "streams/trump_approval.csv.gz": "aef188d04b606270e9590013282e2ede3f5f92edae1106d85d3defa483189cb0",
    "uci/boston.csv.gz": "59f7ce87c12ec1b5171d45cf591ff1111ecb9b3bf127bacf1a7e46be883ed2dd",
    "uci/concrete.csv.gz": "88b98d31c0076a5aa76df566011f1f96a48988e3251810673d2d5477d7cbfea2",
    "uci/energy.csv.gz": "fbe8cb33b36297feb31a32904d8fec2c4cdf0cb7ec19cd0f2da52034048f6fe7",
    "uci/kin8nm.csv.gz": "e74acfb93744b300a8bca76890a2a4a2f3dedf0ea6a76a7fb353da44ee91c773",
    "uci/naval.csv.gz": "2d3e3ab5dcfefe06057f4655d2a11ab931ae6ce4f436452145e5a40bd35331d3",
    "uci/power.csv.gz": "b03855e0700d68d356f51ef4322bbe20c0da1921adbbe94f7cc77f7692115e1d",
    "uci/protein.csv.gz": "ad471b6eb76d967317749abbf58cfb03e1dbbb84035bba6d60338cac647a42db",
    "uci/wine_red.csv.gz": "0a217383ca4f6abe5f4df1bfa741de54979537957374d8a4c0b44960db1be840",
    "uci/yacht.csv.gz": "7ab905e069cbb935254c9c8be544ee7fac9c451e554e82b7133ade01d606e2f7",
    "well_log.csv.gz": "c1c5e48ba8699116b4fd4d89ac5e65a44304f5302df6ff79a4c023919ac89114",
}

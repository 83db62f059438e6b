"""Names, sizes in bytes and sha256 of the files of the public data sets; made from their own list."""

__all__ = ["FILES"]

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

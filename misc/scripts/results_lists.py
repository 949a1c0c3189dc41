"""Which runs of misc/results/ the tables of misc/scripts/results_tables.py show: the newest of each kind.

Who records a result puts it here in the place of the older one.
"""

# Programs don't know which revision they run: who recorded a file said so.
REVISIONS = {
    "unasked_h200": "a6d7e650",
    "unasked_report_h200": "6f3b1e54",
    "unasked_report_turns_h200": "6f3b1e54",
    "unasked_report_shapes_h200": "6f3b1e54",
    "unasked_shapes_starts_h200": "6f3b1e54",
    "unasked_alexnet_h200": "8f3a3b1b",
    "unasked_resnet18_h200": "8f3a3b1b",
    "unasked_resnet18_again_h200": "8f3a3b1b",
    "one_sample_first_h200": "8f3a3b1b",
    "one_sample_first_again_h200": "c25056c9",
    "starts_h200": "8f3a3b1b",
    "starts_16_cpus_h200": "8f3a3b1b",
    "first_layers_h200": "ec955a37",
    "first_layers_64mib_h200": "e74f4114",
    "other_layers_h200": "e14e7993",
    "other_layers_measured_h200": "0f159ce1",
    "one_sample_sd15_turns_h200": "9f0994da",
    "one_sample_layers_current_h200": "e89cf254",
    "volume_unet32_h200": "fbab15b",
    "volume_monai32_h200": "ffd3453",
    "volume_64_h200": "ace0df7c",
    "volume_vgg16_h200": "ffd3453",
    "programs_measured_h100": "bc64f1a",
    "programs_resnet50_h100": "b6aa90b",
    "one_sample_h200": "4eaefeed",
    "one_sample_stylegan_h200": "4eaefeed",
    "one_sample_host_paced_h100": "d0fe47f",
    "one_sample_layers_64mib_h200": "ba5160cb to e1562b2e",
    "one_sample_sd15_h200": "e1562b2e",
    "one_sample_efficientnet_h100": "76b63be0",
    "one_sample_told_h100": "10e7535c",
    "one_sample_layers_bands_h100": "10e7535c, volumes cdad05db",
    "one_sample_uncapped_turns_h100": "cdad05db",
    "one_sample_saving_h100": "4948ad5e",
    "one_sample_dynunet_h100": "e9b1e59d",
    "one_sample_variants_h100": "ce4d2647",
    "one_sample_layers_variants_h100": "512df53e, 16-bit gradients ce4d2647",
    "one_sample_layers_variants_h200": "ce4d2647",
    "one_sample_layers_rest_h200": "632bdd62",
    "one_sample_layers_folds_h200": "24690d9a",
    "one_sample_layers_frames_h200": "the tree before a2777982",
    "one_sample_dynunet_h200": "the tree before a2777982",
    "second_start_tuned_h100": "10e7535c",
    "unasked_64mib_h100": "76b63be0",
    "one_sample_layers_h100": "7229b6a",
    "one_sample_layers_limits_h100": "d2daeb5",
    "one_sample_programs_h100": "ab73d02",
    "unasked_h100": "8ffdc81",
    "unasked_measuring_h100": "efc84c8",
    "unasked_shapes_training_h100": "92ab458",
    "jax_alexnet_h100": "31c8ed8",
    "jax_types_h200": "4eaefeed",
    "shares2_pytorch_unequal_h200": "4eaefeed",
    "shares2_pytorch_unequal_fma_h200": "4eaefeed",
    "shares2_resnet18_unequal_fma_h200": "4eaefeed",
    "programs_second_start_h100": "7b6a04b",
    "programs_shipped_h100": "7ba7ca8",
    "preload_planned_h100": "b6aa90b",
    "hot_path_legacy_h100": "b6aa90b",
    "hot_path_engines_h200": "16580fb",
    "replay_h200": "71710bf",
    # These name the revision that was configured before, or a tree that became the one here.
    "conv3d_tf32_1gib_engines_fast_h200": "ac86d29",
    "conv3d_tf32_64mib_engines_fast_h200": "ac86d29",
    "network_alexnet_tf32_120mib_h100": "b6aa90b",
    "streams_alexnet_tf32_120mib_layer_engines_h200": "16580fb",
    "streams_resnet18_tf32_480mib_one_engines_h200": "16580fb",
    "streams_resnet18_tf32_480mib_layer_engines_h200": "16580fb",
    "streams_resnet18_n32_240mib_operation_h200": "16580fb",
    "streams_resnet18_n8_60mib_operation_h200": "16580fb",
}

CONVOLUTIONS = (
    ("alexnet_tf32_8mib_engines_fast_h200", "AlexNet, N=256, TF32", "8 MiB"),
    ("alexnet_tf32_64mib_engines_fast_h200", "AlexNet, N=256, TF32", "64 MiB"),
    ("alexnet_tf32_256mib_engines_fast_h200", "AlexNet, N=256, TF32", "256 MiB"),
    ("alexnet_tf32_24gib_engines_fast_h200", "AlexNet, N=256, TF32", "24 GiB"),
    ("alexnet_fma_64mib_engines_fast_h200", "AlexNet, N=256, FMA", "64 MiB"),
    ("alexnet_bf16_nhwc_8mib_engines_fast_h200", "AlexNet, N=256, bfloat16, NHWC", "8 MiB"),
    ("alexnet_bf16_nhwc_24gib_engines_fast_h200", "AlexNet, N=256, bfloat16, NHWC", "24 GiB"),
    ("resnet18_tf32_8mib_engines_fast_h200", "ResNet-18, N=128, TF32", "8 MiB"),
    ("resnet18_tf32_64mib_engines_fast_h200", "ResNet-18, N=128, TF32", "64 MiB"),
    ("resnet18_tf32_24gib_engines_fast_h200", "ResNet-18, N=128, TF32", "24 GiB"),
    ("resnet18_bf16_nhwc_8mib_engines_fast_h200", "ResNet-18, N=128, bfloat16, NHWC", "8 MiB"),
    ("vgg16_n64_tf32_64mib_engines_fast_h200", "VGG-16, N=64, TF32", "64 MiB"),
    ("resnet50_bf16_nhwc_8mib_engines_fast_h200", "ResNet-50, N=128, bfloat16, NHWC", "8 MiB"),
    ("resnet50_bf16_nhwc_24gib_engines_fast_h200", "ResNet-50, N=128, bfloat16, NHWC", "24 GiB"),
    ("resnet50_half_nhwc_8mib_engines_fast_h200", "ResNet-50, N=128, half, NHWC", "8 MiB"),
    ("resnet50_half_nhwc_24gib_engines_fast_h200", "ResNet-50, N=128, half, NHWC", "24 GiB"),
    ("deepbench_fma_256mib_engines_fast_h200", "DeepBench 3x3 and 5x5, N=256, FMA", "256 MiB"),
    ("conv3d_tf32_64mib_engines_fast_h200", "3-D, N=8, TF32", "64 MiB"),
    ("conv3d_tf32_1gib_engines_fast_h200", "3-D, N=8, TF32", "1 GiB"),
)

IN_README = {
    "alexnet_tf32_8mib_engines_fast_h200",
    "alexnet_tf32_64mib_engines_fast_h200",
    "alexnet_tf32_24gib_engines_fast_h200",
    "resnet18_tf32_8mib_engines_fast_h200",
    "resnet18_tf32_64mib_engines_fast_h200",
    "resnet18_tf32_24gib_engines_fast_h200",
    "alexnet_fma_64mib_engines_fast_h200",
}

def _in_one_run(what, program):
    """All of one sweep, plain at its begin and end."""
    plain = f"{program}_plain {program}_again"
    return (what, ("one_sample_h200", plain),
            *[[("one_sample_h200", plain, f"{program}_{mode}")] for mode in ("ucudnn", "256MiB", "64MiB")])


PROGRAMS = (  # the program; plain time and memory; for no cap, 256 and 64 MiB: file, plain runs, runs with us
    ("StyleGAN2-like, half",
     ("one_sample_stylegan_h200", "stylegan_plain stylegan_again1 stylegan_again2"),
     [("one_sample_h200", "stylegan_plain stylegan_again", "stylegan_ucudnn")],
     [("one_sample_h200", "stylegan_plain stylegan_again", "stylegan_256MiB")],
     [("one_sample_stylegan_h200", "stylegan_plain stylegan_again1 stylegan_again2",
       "stylegan_64MiB_0 stylegan_64MiB_1 stylegan_64MiB_2")]),
    _in_one_run("EfficientNet training, N=128, bfloat16", "efficientnet"),
    ("EfficientNet training, N=128, bfloat16, H100",
     ("one_sample_efficientnet_h100", "efficientnet_plain efficientnet_again0 efficientnet_again1 efficientnet_again2"),
     [("one_sample_uncapped_turns_h100",
       "efficientnet_plain efficientnet_again0 efficientnet_again1",
       "efficientnet_nocap_0 efficientnet_nocap_1 efficientnet_nocap_2")],
     [("one_sample_efficientnet_h100", "efficientnet_plain efficientnet_again0 efficientnet_again1 efficientnet_again2",
       "efficientnet_256MiB_0 efficientnet_256MiB_1 efficientnet_256MiB_2")],
     []),
    ("Stable Diffusion 1.5 UNet, N=8, half",
     ("one_sample_sd15_h200", "sd15_unet_plain sd15_unet_again1"),
     [("one_sample_sd15_turns_h200", "sd15_unet_plain sd15_unet_again0 sd15_unet_again1 sd15_unet_again2",
       "sd15_unet_nocap_0 sd15_unet_nocap_1 sd15_unet_nocap_2"),
      ("one_sample_sd15_turns_h200", "sd15_unet_plain sd15_unet_again0 sd15_unet_again1 sd15_unet_again2",
       "sd15_unet_measured_0")],
     [("one_sample_sd15_h200", "sd15_unet_plain sd15_unet_again1", "sd15_unet_256MiB_0")],
     []),
    ("Stable Diffusion 1.5 UNet, N=8, half, H100",
     ("one_sample_host_paced_h100", "sd15_unet_plain sd15_unet_again1 sd15_unet_again2"),
     [("one_sample_uncapped_turns_h100",
       "sd15_unet_plain sd15_unet_again0 sd15_unet_again1",
       "sd15_unet_nocap_0 sd15_unet_nocap_1"),
      ("one_sample_saving_h100", "sd15_unet_plain sd15_unet_again", "sd15_unet_ucudnn"),
      ("one_sample_variants_h100", "sd15_unet_plain", "sd15_unet_ucudnn")],
     [("one_sample_host_paced_h100", "sd15_unet_plain sd15_unet_again1 sd15_unet_again2",
       "sd15_unet_256MiB_0 sd15_unet_256MiB_1 sd15_unet_256MiB_2")],
     [("one_sample_host_paced_h100", "sd15_unet_plain sd15_unet_again1 sd15_unet_again2",
       "sd15_unet_64MiB_0 sd15_unet_64MiB_1 sd15_unet_64MiB_2")]),
    ("DynUNet training, 2 x 128^3, half",
     ("one_sample_dynunet_h200", "dynunet_plain dynunet_again"),
     *[[("one_sample_dynunet_h200", "dynunet_plain dynunet_again", f"dynunet_{mode}")]
       for mode in ("ucudnn", "256MiB", "64MiB")]),
    ("DynUNet training, 2 x 128^3, half, H100",
     ("one_sample_saving_h100", "dynunet_plain"),
     [("one_sample_saving_h100", "dynunet_plain", "dynunet_ucudnn"),
      ("one_sample_dynunet_h100", "dynunet_plain", "dynunet_ucudnn")],
     [("one_sample_saving_h100", "dynunet_plain", "dynunet_256MiB")],
     []),
    ("StyleGAN2-like, half, H100",
     ("one_sample_saving_h100", "stylegan_plain"),
     [("one_sample_saving_h100", "stylegan_plain", "stylegan_ucudnn"),
      ("one_sample_variants_h100", "stylegan_plain", "stylegan_ucudnn")],
     [("one_sample_saving_h100", "stylegan_plain", "stylegan_256MiB")],
     []),
    ("SDXL decoder, 4 x 1024x1024, half",
     ("one_sample_h200", "sdxl_decoder_plain sdxl_decoder_again"),
     [("one_sample_h200", "sdxl_decoder_plain sdxl_decoder_again", "sdxl_decoder_ucudnn")],
     [],
     [("one_sample_h200", "sdxl_decoder_plain sdxl_decoder_again", "sdxl_decoder_64MiB")]),
    ("SDXL decoder, 4 x 1024x1024, half, H100",
     ("one_sample_told_h100", "sdxl_decoder_plain"),
     [("one_sample_variants_h100", "sdxl_decoder_plain", "sdxl_decoder_ucudnn")],
     [("one_sample_told_h100", "sdxl_decoder_plain", "sdxl_decoder_256MiB")],
     []),
    _in_one_run("ResNet-50 training, N=128, bfloat16", "resnet50"),
    ("Wan 2.1 decoder, 17 x 832x480, bfloat16, H100",
     ("one_sample_told_h100", "wan_decoder_plain"),
     *[[(file, "wan_decoder_plain", f"wan_decoder_{cap}")
        for file in ("one_sample_told_h100", "one_sample_saving_h100", "one_sample_variants_h100")]
       for cap in ("ucudnn", "256MiB")],
     [("one_sample_told_h100", "wan_decoder_plain", "wan_decoder_64MiB")]),
    _in_one_run("one 3-D convolution, bfloat16", "conv3d"),
)

TRAINING = (  # what, cap, plain run, run with us
    ("AlexNet, N=256", "256 MiB", "alexnet_plain", "alexnet_256MiB"),
    ("AlexNet, N=256", "64 MiB", "alexnet_plain_89fc817", "alexnet_64MiB_89fc817"),
    ("AlexNet, N=256", "8 MiB", "alexnet_plain", "alexnet_8MiB"),
    ("AlexNet, N=256, `cudnn.benchmark`", "64 MiB", "alexnet_plain_benchmark", "alexnet_64MiB_benchmark_89fc817"),
    ("AlexNet, N=256, cuDNN's legacy API", "64 MiB", "alexnet_legacy_plain", "alexnet_legacy"),
    ("AlexNet, N=256, DDP on two H100", "64 MiB", "ddp_plain_alexnet_256_30", "ddp_64MiB_alexnet_256_30"),
    ("ResNet-18, N=128", "256 MiB", "resnet18_plain_89fc817", "resnet18_256MiB_89fc817"),
    ("ResNet-18, N=128", "64 MiB", "resnet18_plain_89fc817", "resnet18_64MiB_89fc817"),
    ("ResNet-18, N=128", "8 MiB", "resnet18_plain", "resnet18_8MiB"),
    ("ResNet-18, N=128, bfloat16, channels last", "64 MiB", "resnet18_bf16_plain", "resnet18_bf16"),
    ("ResNet-18, N=128, `torch.cuda.graph`", "64 MiB", "resnet18_graph_plain", "resnet18_graph"),
    ("ResNet-18, N=128, `torch.compile`", "64 MiB", "resnet18_compile_plain", "resnet18_compile"),
    ("ResNet-18, N=128, DDP on two H100", "64 MiB", "ddp_plain_resnet18_128_30", "ddp_64MiB_resnet18_128_30"),
    ("ResNet-50, N=64", "64 MiB", "resnet50_plain", "resnet50"),
    ("VGG-16, N=64", "256 MiB", "vgg16_plain", "vgg16_256MiB"),
    ("VGG-16, N=64", "64 MiB", "vgg16_plain_89fc817", "vgg16_64MiB_89fc817"),
    ("3-D network, N=8", "1 GiB", "volume_plain", "volume_1GiB"),
    ("3-D network, N=8, `cudnn.benchmark`", "1 GiB", "volume_plain_benchmark", "volume_1GiB_benchmark"),
)

ONE_SAMPLE_LAYERS = (  # of a row in two files the later counts
    "one_sample_layers_h100", "one_sample_layers_limits_h100", "one_sample_layers_bands_h100", "one_sample_layers_64mib_h200",
    "one_sample_layers_variants_h200", "one_sample_layers_variants_h100", "one_sample_layers_rest_h200",
    "one_sample_layers_folds_h200", "one_sample_layers_frames_h200", "one_sample_layers_current_h200",
)

AFTER_TUNING = (  # what, plain runs, runs with what `--tune` has measured before
    ("ResNet-50, N=128, bfloat16", "resnet50_plain resnet50_again1 resnet50_again2",
     "resnet50_second0 resnet50_second1 resnet50_second2"),
    ("StyleGAN2-like, half", "stylegan_plain stylegan_again1 stylegan_again2",
     "stylegan_second0 stylegan_second1 stylegan_second2"),
)

FIRST_STEPS = (  # what, file, plain, not measured before, measured at once, from a database, with shipped measurements
    ("AlexNet, 64 MiB", "pytorch_h100", "alexnet_plain_89fc817", "alexnet_64MiB_cold_89fc817",
     "alexnet_64MiB_fill_89fc817", "alexnet_64MiB_89fc817", None),
    ("ResNet-18, 64 MiB", "pytorch_h100", "resnet18_plain_89fc817", "resnet18_64MiB_cold_89fc817",
     "resnet18_64MiB_fill_89fc817", "resnet18_64MiB_89fc817", None),
    ("VGG-16, 64 MiB", "pytorch_h100", "vgg16_plain_89fc817", "vgg16_64MiB_cold", "vgg16_64MiB_fill_89fc817",
     "vgg16_64MiB_89fc817", None),
    ("3-D network, 1 GiB", "pytorch_h100", "volume_plain", None, "volume_1GiB_fill", "volume_1GiB", None),
    ("EfficientNet training", "one_sample_uncapped_turns_h100", "efficientnet_again0", None, "efficientnet_fill",
     "efficientnet_nocap_1", None),
    ("SDXL decoder", "one_sample_variants_h100", "sdxl_decoder_plain", None, "sdxl_decoder_ucudnn", None, None),
    ("DynUNet training", "one_sample_dynunet_h100", "dynunet_plain", None, "dynunet_ucudnn", None, None),
    ("Wan 2.1 decoder, measured", "one_sample_variants_h100", "wan_decoder_plain", None, "wan_decoder_ucudnn", None, None),
    ("ResNet-50", "programs_second_start_h100", "resnet50_again", None, None, "resnet50_second", "resnet50_ucudnn"),
    ("Wan 2.1 decoder", "programs_shipped_h100", "wan_decoder_plain", None, None, None, "wan_decoder_ucudnn"),
    ("StyleGAN2-like", "programs_shipped_h100", "stylegan_plain", None, None, None, "stylegan_ucudnn"),
)

LOSSES = (  # what, model, plain, with us, plain with another choice of kernels
    ("VGG-16, 64 MiB", "vgg16", "vgg16_plain", "vgg16_64MiB", "vgg16_plain_benchmark"),
    ("ResNet-18, 64 MiB", "resnet18", "resnet18_plain", "resnet18_64MiB", "resnet18_plain_benchmark"),
    ("3-D network, 1 GiB", "volume", "volume_plain", "volume_1GiB", "volume_plain_benchmark"),
    ("AlexNet, 64 MiB", "alexnet", "alexnet_plain", "alexnet_64MiB", "alexnet_plain_benchmark"),
)

BATCHES = (  # what, cap, then in each column: run, batch
    ("VGG-16, plain", ("vgg16_16gib_168_plain", "vgg16_16gib_184_plain")),
    ("VGG-16, plain with `cudnn.benchmark`", ("vgg16_16gib_160_plain_benchmark", None)),
    ("VGG-16, within 64 MiB", ("vgg16_16gib_200_long_89fc817", None)),
    ("3-D network, plain", ("volume_16gib_14_plain", "volume_16gib_16_plain")),
    ("3-D network, within 1 GiB", ("volume_16gib_16_long", "volume_16gib_17")),
)

CAPPED = "within 64 MiB"

MEASURING = (  # what, for each pair of runs: file, program, what its runs plain and with us are called
    (f"AlexNet training, {CAPPED}",
     "unasked_h200 alexnet plain ucudnn", "unasked_report_h200 alexnet plain ucudnn",
     "unasked_alexnet_h200 alexnet plain ucudnn"),
    ("AlexNet, shipped measurements", "unasked_shapes_training_h100 alexnet plain shipped"),
    (f"ResNet-18 training, {CAPPED}",
     "unasked_h200 resnet18 plain ucudnn", "unasked_report_h200 resnet18 plain ucudnn",
     "unasked_resnet18_h200 resnet18 plain ucudnn", "unasked_resnet18_again_h200 resnet18 plain ucudnn"),
    ("ResNet-18, shipped measurements", "unasked_shapes_training_h100 resnet18 plain shipped"),
    ("HiFi-GAN, N=8",
     "unasked_h200 hifigan plain ucudnn", "unasked_h200 hifigan2 plain ucudnn", "unasked_report_h200 hifigan plain ucudnn",
     "unasked_report_turns_h200 hifigan plain ucudnn", "unasked_report_turns_h200 hifigan again ucudnn2",
     "unasked_report_turns_h200 hifigan again2 ucudnn3"),
    ("HiFi-GAN, N=8", "unasked_shapes_training_h100 hifigan plain ucudnn"),
    ("DeepLab training", "unasked_h200 deeplab plain ucudnn", "unasked_report_h200 deeplab plain ucudnn"),
    ("DeepLab training", "unasked_h100 deeplab plain ucudnn"),
    ("ResNet-50 inference, N=64, half",
     "unasked_h200 resnet50_inference plain ucudnn", "unasked_h200 resnet50_inference2 plain ucudnn",
     "unasked_h200 resnet50_inference3 plain ucudnn", "unasked_report_h200 resnet50_inference plain ucudnn",
     "unasked_report_turns_h200 resnet50_inference plain ucudnn", "unasked_report_turns_h200 resnet50_inference again ucudnn2",
     "unasked_report_turns_h200 resnet50_inference again2 ucudnn3"),
    ("ResNet-50 inference, N=64, half", "unasked_shapes_training_h100 resnet50_inference plain ucudnn"),
    ("R3D-18 training", "unasked_h200 r3d18 plain ucudnn", "unasked_report_h200 r3d18 plain ucudnn"),
    ("R3D-18 training", "unasked_h100 r3d18 plain ucudnn"),
    ("16 widths in turn, 6 layers",
     "unasked_h200 changing_sizes plain ucudnn", "unasked_h200 changing_sizes2 plain ucudnn",
     "unasked_report_h200 changing_sizes plain ucudnn"),
    ("16 widths in turn, 6 layers", "unasked_measuring_h100 changing_sizes plain ucudnn"),
)

STARTS = (  # file, CPUs
    ("starts_h200", 4),
    ("starts_16_cpus_h200", 16),
)

IMAGE_WIDTHS = (  # what, file, program, run with us
    ("no limit", "unasked_h200", "shapes", "ucudnn"),
    ("no limit", "unasked_h200", "shapes2", "ucudnn"),
    ("no limit", "unasked_report_shapes_h200", "shapes", "ucudnn"),
    ("64 MiB", "unasked_h200", "shapes", "64MiB"),
    ("64 MiB", "unasked_h200", "shapes2", "64MiB"),
    ("64 MiB", "unasked_report_shapes_h200", "shapes", "64MiB"),
    ("64 MiB", "unasked_shapes_starts_h200", "shapes", "64MiB"),
    ("64 MiB", "unasked_shapes_starts_h200", "shapes2", "64MiB"),
    ("64 MiB", "unasked_shapes_starts_h200", "shapes3", "64MiB"),
)

VOLUMES = (  # channels, file of ours, file of MONAI's
    (32, "volume_unet32_h200", "volume_monai32_h200"),
    (64, "volume_64_h200", "volume_64_h200"),
)

HELPS = (  # what, cap, file, key of the step's time, plain runs, runs with us
    ("StyleGAN2-like inference, half", "64 MiB", "one_sample_stylegan_h200", "step_of_median_ms",
     "stylegan_plain stylegan_again1 stylegan_again2", "stylegan_64MiB_0 stylegan_64MiB_1 stylegan_64MiB_2"),
    ("Stable Diffusion 1.5 UNet, half", "none", "one_sample_sd15_turns_h200", "step_of_median_ms",
     "sd15_unet_plain sd15_unet_again0 sd15_unet_again1 sd15_unet_again2",
     "sd15_unet_nocap_0 sd15_unet_nocap_1 sd15_unet_nocap_2"),
    ("VGG-16 training, N=64", "64 MiB", "pytorch_h100", "later_step_ms", "vgg16_plain_89fc817", "vgg16_64MiB_89fc817"),
    ("ResNet-18 training, N=128", "64 MiB", "pytorch_h100", "later_step_ms", "resnet18_plain_89fc817",
     "resnet18_64MiB_89fc817"),
    ("ResNet-50 training, N=128, bfloat16", "64 MiB", "one_sample_h200", "step_of_median_ms",
     "resnet50_plain resnet50_again", "resnet50_64MiB"),
    ("SDXL decoder, half", "256 MiB", "one_sample_h200", "step_of_median_ms",
     "sdxl_decoder_plain sdxl_decoder_again", "sdxl_decoder_256MiB"),
    ("AlexNet training, N=256", "64 MiB", "pytorch_h100", "later_step_ms", "alexnet_plain_89fc817", "alexnet_64MiB_89fc817"),
    ("Wan 2.1 decoder, bfloat16", "256 MiB", "one_sample_h200", "step_of_median_ms",
     "wan_decoder_plain wan_decoder_again", "wan_decoder_256MiB"),
    ("3-D network, training, N=8", "1 GiB", "pytorch_h100", "later_step_ms", "volume_plain", "volume_1GiB"),
    ("nnU-Net training (MONAI's DynUNet), half", "64 MiB", "one_sample_dynunet_h200", "step_of_median_ms",
     "dynunet_plain dynunet_again", "dynunet_64MiB"),
    ("one 3-D convolution, bfloat16", "256 MiB", "one_sample_h200", "step_of_median_ms",
     "conv3d_plain conv3d_again", "conv3d_256MiB"),
)

NETWORKS = (
    ("network_alexnet_tf32_120mib_h100", "AlexNet, N=256", "120 MiB", "one", "H100"),
    ("network_alexnet_tf32_120mib_engines_h200", "AlexNet, N=256", "120 MiB", "one", "H200"),
    ("streams_alexnet_tf32_120mib_layer_engines_h200", "AlexNet, N=256", "120 MiB", "layer", "H200"),
    ("streams_resnet18_tf32_480mib_one_engines_h200", "ResNet-18, N=128", "480 MiB", "one", "H200"),
    ("streams_resnet18_tf32_480mib_layer_engines_h200", "ResNet-18, N=128", "480 MiB", "layer", "H200"),
    ("streams_resnet18_n32_240mib_operation_h200", "ResNet-18, N=32", "240 MiB", "operation", "H200"),
    ("streams_resnet18_n8_60mib_operation_h200", "ResNet-18, N=8", "60 MiB", "operation", "H200"),
)

CALLS = (
    ("legacy call of a plan of one kernel", "hot_path_legacy_h100", "plannedCall/0"),
    ("legacy split call, for each micro-batch", "hot_path_legacy_h100", "splitCall"),
    ("legacy call under a total", "hot_path_legacy_h100", "ownedCall"),
    ("graph API: left alone, one sample", "preload_planned_h100", "leftAlone/one_sample"),
    ("graph API: left alone, a graph that is not split", "preload_planned_h100", "leftAlone/unknown_graph"),
    ("graph API: left alone, its workspace was not asked for", "preload_planned_h100", "leftAlone/not_asked"),
    ("graph API: a plan of one kernel, least", "preload_planned_h100", "execute/1"),
    ("graph API: a plan of one kernel, most", "preload_planned_h100", "execute/2"),
    ("graph API: a question for a plan's workspace", "preload_planned_h100", "askWorkspace"),
)

SHARES = (  # data parallel, of misc/scripts/measure_shares.sh: file, network
    ("shares2_resnet18_equal_h100", "ResNet-18, TF32"),
    ("shares2_resnet18_unequal_h200", "ResNet-18, TF32"),
    ("shares2_resnet18_unequal_fma_h200", "ResNet-18, FMA"),
    ("shares2_vgg16_equal_h100", "VGG-16, TF32"),
    ("shares2_vgg16_unequal_fma_h100", "VGG-16, FMA"),
    ("shares2_vgg16_unequal_h200", "VGG-16, TF32"),
    ("shares2_alexnet_limits_h100", "AlexNet, TF32"),
    ("shares2_alexnet_limits_legacy_h100", "AlexNet, TF32, legacy"),
    ("shares2_resnet18_memory_h100", "ResNet-18, TF32"),
    ("shares4_resnet18_equal_h200", "ResNet-18, TF32"),
    ("shares4_resnet18_unequal_h200", "ResNet-18, TF32"),
    ("shares4_vgg16_equal_h200", "VGG-16, TF32"),
)

SHARES_PYTORCH = (  # the same of misc/examples/ddp_shares.py
    "shares2_pytorch_unequal_h200",
    "shares2_pytorch_unequal_fma_h200",
)

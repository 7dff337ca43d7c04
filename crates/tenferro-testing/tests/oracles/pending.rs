//! The families, and reports of bugs, of which nothing is replayed, each with its reason: the one list of
//! them.
//!
//! Of a family that is not here a record must be replayed, and of one that is here none can be: so an adapter
//! that takes nothing is noticed, and so is a reason that is no longer one.

/// Reasons, and the families they are of.
const NOTHING_REPLAYED: &[(&str, &str)] = &[
    (
        "no FFT yet",
        "fft fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfftn \
         fft.rfftn fft-length-1 fft-zero-length fftn-axis-choice irfft-odd-default irfft-pad-trunc \
         rfft-row-grad",
    ),
    (
        "operation absent: rounding",
        "ceil frac round round_decimals_0 round_decimals_3 round_decimals_neg_3 __rmod__ frexp",
    ),
    ("operation absent: sort", "median sort topk sort-nan-sign"),
    ("operation absent: erf", "erfc special_erfcx special_log_ndtr special_ndtr special_ndtri"),
    ("operation absent: lgamma", "lgamma mvlgamma_mvlgamma_p_1 mvlgamma_mvlgamma_p_3 mvlgamma_mvlgamma_p_5"),
    (
        "operation absent: polygamma",
        "digamma polygamma_polygamma_n_0 polygamma_polygamma_n_1 polygamma_polygamma_n_2 \
         polygamma_polygamma_n_3 polygamma_polygamma_n_4 special_polygamma_special_polygamma_n_0",
    ),
    ("operation absent: Bessel functions", "i0 special_i0e special_i1 special_i1e"),
    ("svd documents a gauge, so every loss has a derivative", "svd__gauge_ill_defined"),
    ("a bound of time, a row of the benchmarks: views of 2^25 elements", "view-is-metadata"),
    ("no WebGPU backend", "wgpu-dispatch-limit"),
];

/// Why nothing of a family is replayed, if nothing is to be.
pub(crate) fn reason(family: &str) -> Option<&'static str> {
    let of = |families: &str| families.split_whitespace().any(|name| name == family);
    NOTHING_REPLAYED.iter().find(|(_, families)| of(families)).map(|(reason, _)| *reason)
}

/// Whether it is as the list says, of a family of which so many records were replayed and none failed.
pub(crate) fn check(family: &str, replayed: usize) -> Result<(), String> {
    match (reason(family), replayed) {
        (None, 0) => Err("nothing was replayed, for which pending.rs has no reason".into()),
        (Some(reason), 1..) => Err(format!("{replayed} were replayed in spite of pending.rs: {reason}")),
        _ => Ok(()),
    }
}

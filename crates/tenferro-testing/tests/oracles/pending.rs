//! Why a family has no adapter.

/// Families by the operation that they need and that is not there.
const ABSENT: &[(&str, &str)] = &[
    ("rounding", "ceil frac round round_decimals_0 round_decimals_3 round_decimals_neg_3 __rmod__ frexp"),
    ("sort", "median sort topk"),
    ("erf", "erfc special_erfcx special_log_ndtr special_ndtr special_ndtri"),
    ("lgamma", "lgamma mvlgamma_mvlgamma_p_1 mvlgamma_mvlgamma_p_3 mvlgamma_mvlgamma_p_5"),
    (
        "polygamma",
        "digamma polygamma_polygamma_n_0 polygamma_polygamma_n_1 polygamma_polygamma_n_2 \
         polygamma_polygamma_n_3 polygamma_polygamma_n_4 special_polygamma_special_polygamma_n_0",
    ),
    ("Bessel functions", "i0 special_i0e special_i1 special_i1e"),
];

pub(crate) fn reason(family: &str) -> String {
    if family.starts_with("fft.") {
        return "no FFT yet".into();
    }
    let needs = |(_, families): &&(&str, &str)| families.split_whitespace().any(|name| name == family);
    match ABSENT.iter().find(needs) {
        Some((operation, _)) => format!("operation absent: {operation}"),
        None => "operation absent".into(),
    }
}

//! Every property on every operation, as tests named `OPERATION::PROPERTY`; see the library.

use libtest_mimic::{Arguments, FormatSetting, Trial};

fn main() {
    let mut args = Arguments::from_args();
    // A thousand names are only worth a line each when some were asked for.
    if args.filter.is_none() && !args.list {
        args.format.get_or_insert(FormatSetting::Terse);
    }
    let mut trials = Vec::new();
    for info in tenferro_testing::all() {
        let info = std::sync::Arc::new(info);
        for property in tenferro_testing::LOOPS {
            if !property.applies(&info) {
                continue;
            }
            let info = info.clone();
            let name = format!("{}::{}", info.name, property.name);
            trials.push(Trial::test(name, move || Ok((property.check)(&info)?)));
        }
    }
    trials.extend(tenferro_testing::COMPLETENESS.iter().map(|property| {
        Trial::test(format!("operations::{}", property.name), || {
            Ok((property.check)(&tenferro_testing::all())?)
        })
    }));
    libtest_mimic::run(&args, trials).exit();
}

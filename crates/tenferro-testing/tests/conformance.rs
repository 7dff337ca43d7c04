//! Every property on every operation, as tests named `OPERATION::PROPERTY`; see the library. With the environment
//! variable TENFERRO_BLAS, the file of a BLAS and LAPACK library, matrices of every order go there.

use libtest_mimic::{Arguments, FormatSetting, Trial};
use tenferro_cpu::blas;

fn main() {
    let mut args = Arguments::from_args();
    // A thousand names are only worth a line each when some were asked for.
    if args.filter.is_none() && !args.list {
        args.format.get_or_insert(FormatSetting::Terse);
    }
    if let Some(path) = std::env::var_os("TENFERRO_BLAS") {
        install(&path);
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

fn install(path: &std::ffi::OsStr) {
    // SAFETY: a BLAS runs no code of consequence when it is loaded; it is never unloaded.
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(path) }.expect("a library")));
    // SAFETY: the names are those of the Fortran interface.
    let mut blas = unsafe {
        blas::Blas::resolve("given", |name| {
            library.get(name.as_bytes()).map_or(std::ptr::null(), |f: libloading::Symbol<*const _>| *f)
        })
    };
    assert!(
        blas.d.gemm.is_some() && blas.d.getrf.is_some(),
        "{} has neither dgemm nor dgetrf",
        path.display()
    );
    blas.min_order = 0;
    // SAFETY: as above.
    unsafe { blas::install(Some(blas)) };
}

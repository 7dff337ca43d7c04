pub(super) fn list() -> Vec<crate::info::OpInfo> { vec![] }

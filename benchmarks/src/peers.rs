//! The peers: `peers.py`, asked over a pipe.

use crate::Result;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};
use tenferro_tensor::TypedTensor;

/// The processes of the peers, which sleep until they are asked.
pub(crate) struct Peers {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    identities: Vec<String>,
    folder: PathBuf,
}

impl Peers {
    /// Starts them with this Python, on the core of this process.
    pub(crate) fn start(python: &Path, core: Option<usize>) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("tenferro-benchmarks-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(python);
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py"))
            .args(["--serve", "--data"])
            .arg(&folder);
        if let Some(core) = core {
            command.args(["--core", &core.to_string()]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("the peers have no output")?);
        let questions = child.stdin.take();
        let mut peers = Peers { child, questions, answers, identities: Vec::new(), folder };
        let identities = peers.answer()?;
        let text = |v: &Value, field: &str| v[field].as_str().unwrap_or("?").to_owned();
        peers.identities = (identities.as_array().into_iter().flatten())
            .map(|v| format!("{} {} ({})", text(v, "peer"), text(v, "version"), text(v, "api")))
            .collect();
        Ok(peers)
    }

    /// Name, version and interface of each.
    pub(crate) fn identities(&self) -> &[String] {
        &self.identities
    }

    /// The operands of a case, before it is asked about.
    pub(crate) fn give(&self, case: &str, operands: &[TypedTensor<f64>]) -> Result<()> {
        for (k, x) in operands.iter().enumerate() {
            let bytes: Vec<u8> = x.to_vec_row_major()?.into_iter().flat_map(f64::to_ne_bytes).collect();
            fs::write(self.folder.join(format!("{case}.{k}")), bytes)?;
        }
        Ok(())
    }

    /// By peer, the median time in nanoseconds of samples during `budget`; without one, the projection of the result.
    pub(crate) fn ask(&mut self, case: &str, budget: Duration) -> Result<BTreeMap<String, f64>> {
        let questions = self.questions.as_mut().ok_or("the peers have ended")?;
        writeln!(questions, "{case} {}", budget.as_nanos())?;
        questions.flush()?;
        let answer = self.answer()?;
        let by_peer = answer.as_object().ok_or("the peers gave no object")?;
        Ok(by_peer.iter().filter_map(|(peer, v)| Some((peer.clone(), v.as_f64()?))).collect())
    }

    fn answer(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the peers ended; their message is above".into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Peers {
    /// The end of their input ends the peers.
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

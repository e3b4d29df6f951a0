//! A PostgreSQL server for tests: started in a temporary directory on a free port of the loopback interface, and
//! stopped with the process of the test.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::skip;

/// The variable that skips the tests on PostgreSQL, if it has a value.
const SKIP: &str = "CLAUDE_AGENT_STORE_SKIP_POSTGRES";

/// Returns whether the tests on PostgreSQL are skipped, and says so.
///
/// # Panics
/// If they are to be skipped in CI.
pub fn is_skipped() -> bool {
    skip::is_skipped("PostgreSQL", SKIP)
}

/// The superuser.
pub const USER: &str = "tester";
/// The password of [`USER`], with characters that a connection string must escape.
pub const PASSWORD: &str = "correct horse/battery@staple";

/// Waits for the end of its input, also when the test is killed, and stops the server then.
const SUPERVISOR: &str = r#"
    folder=$1; shift
    "$@" &
    server=$!
    read -r _
    kill -INT "$server"
    wait "$server"
    rm -rf "$folder"
"#;

/// The options of the server's certificate, which is not that of an authority.
const CERTIFICATE: &str = "
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = localhost
[extensions]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
";

/// A running server. Dropping it stops the server and removes its files.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    supervisor: Option<Child>,
    /// Settings that differ from those of most tests.
    settings: &'static [&'static str],
}

impl Server {
    /// Creates and starts a server. A missing program is installed if the system has `apt-get`.
    ///
    /// # Errors
    /// Returns why there is no server.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// Creates and starts a server with these settings, which take precedence over those of the tests.
    ///
    /// # Errors
    /// Returns why there is no server.
    pub fn start_with(settings: &'static [&'static str]) -> Result<Self, String> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("claude-agent-store-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary directory: {error}"))?;
        if let Some((user, group)) = other_user()? {
            chown(folder.path(), Some(user), Some(group)).map_err(|error| error.to_string())?;
        }
        let server = Self { folder, programs, port: free_port()?, supervisor: None, settings };
        server.create().map_err(|error| format!("PostgreSQL cannot be set up: {error}"))?;
        let mut server = server;
        server.restart()?;
        Ok(server)
    }

    fn create(&self) -> io::Result<()> {
        let password = self.folder.path().join("password");
        fs::write(&password, PASSWORD)?;
        fs::set_permissions(&password, fs::Permissions::from_mode(0o644))?;
        let mut initdb = self.command(&self.programs.join("initdb"))?;
        initdb.args(["--username", USER, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--pgdata"]).arg(self.data());
        run(initdb.arg("--pwfile").arg(&password))?;
        fs::write(self.folder.path().join("openssl.cnf"), CERTIFICATE)?;
        let mut openssl = self.command(Path::new("openssl"))?;
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-days", "36500", "-config", "openssl.cnf"]);
        run(openssl.args(["-keyout", "server.key", "-out", "server.crt"]))
    }

    /// Returns a command that runs as an unprivileged user: PostgreSQL refuses to run as root.
    fn command(&self, program: &Path) -> io::Result<Command> {
        let mut command = Command::new(program);
        if let Some((user, group)) = other_user().map_err(io::Error::other)? {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
        Ok(command)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the server again, after [`kill`](Self::kill).
    ///
    /// # Errors
    /// Returns the log of a server that does not start.
    pub fn restart(&mut self) -> Result<(), String> {
        // The port may have been taken in the meantime.
        for _ in 0..5 {
            let supervisor = self.spawn().map_err(|error| format!("PostgreSQL: {error}"))?;
            let supervisor = self.supervisor.insert(supervisor);
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(60) {
                if is_ready(&self.folder.path().join("data/postmaster.pid")) {
                    return Ok(());
                }
                // Without a server, the supervisor only waits for the end of its input.
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                let has_failed = log
                    .lines()
                    .last()
                    .is_some_and(|line| line.contains("FATAL:  could not create"));
                if has_failed || supervisor.try_wait().is_ok_and(|status| status.is_some()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            self.kill();
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        Err(format!("PostgreSQL does not start: {log}"))
    }

    fn spawn(&self) -> io::Result<Child> {
        // All of its processes were killed.
        drop(fs::remove_file(self.data().join("postmaster.pid")));
        let settings = [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", self.folder.path().join("server.crt").display()),
            format!("ssl_key_file={}", self.folder.path().join("server.key").display()),
            // What was written survives its processes, but not a power failure.
            "fsync=off".to_owned(),
            // What was committed does not survive, unless the store asks for it.
            "synchronous_commit=off".to_owned(),
            "wal_writer_delay=10s".to_owned(),
        ];
        let log = File::create(self.folder.path().join("log"))?;
        let mut command = self.command(Path::new("sh"))?;
        command.args(["-c", SUPERVISOR, "sh"]).arg(self.folder.path());
        command.arg(self.programs.join("postgres")).arg("-D").arg(self.data());
        // The last one counts.
        for setting in settings.iter().map(String::as_str).chain(self.settings.iter().copied()) {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).spawn()
    }

    /// Kills all processes of the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut supervisor) = self.supervisor.take() {
            drop(supervisor.kill());
            drop(supervisor.wait());
        }
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let server = file.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
        let Some(server) = server else { return };
        // Stopped first, so that it starts no further processes.
        if kill_process(server, Signal::STOP).is_err() {
            return;
        }
        let mut all = children(server);
        all.push(server);
        for process in &all {
            // The process may have ended.
            kill_process(*process, Signal::KILL).ok();
        }
        while all.iter().any(|process| is_running(*process)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the port on the loopback interface.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the certificate of the server.
    pub fn certificate(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("server.crt")).unwrap_or_default()
    }

    /// Returns the connection string, without a password and without TLS.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// Returns the connection string for another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/postgres?sslmode=disable")
    }

    /// Returns the connection string for another port, with the password.
    pub fn url_with_password(&self, port: u16) -> String {
        let password = PASSWORD.replace(' ', "%20").replace('/', "%2F").replace('@', "%40");
        self.url_at(port).replace('@', &format!(":{password}@"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Removes the files, which are of no use without the server: a crash is as good as a shutdown.
        self.kill();
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let program = command.get_program().to_string_lossy().into_owned();
    Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Returns the user and the group that run the server, if this process is root.
///
/// # Errors
/// Returns an error when there is no such user.
pub fn other_user() -> Result<Option<(u32, u32)>, String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
    if !is_root {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    for name in ["postgres", "nobody"] {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")));
        let fields: Vec<&str> = line.unwrap_or_default().split(':').collect();
        if let [_, _, user, group, ..] = fields[..]
            && let (Ok(user), Ok(group)) = (user.parse(), group.parse())
        {
            return Ok(Some((user, group)));
        }
    }
    Err("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`".to_owned())
}

/// Returns the directory of the server's programs, and installs them if they are missing.
fn programs() -> Result<PathBuf, String> {
    if let Some(found) = find_programs() {
        return Ok(found);
    }
    // `postgresql` creates a cluster and starts it; the package of a version without `postgresql-common`'s
    // configuration does not exist.
    drop(install("postgresql"));
    find_programs().ok_or_else(|| {
        format!(
            "PostgreSQL is not installed and `apt-get install postgresql` failed; help: install the \
             server, or set {SKIP}=1 to skip these tests"
        )
    })
}

/// Installs a package with apt-get.
///
/// # Errors
/// Returns the output of apt-get.
pub fn install(package: &str) -> io::Result<()> {
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command
    };
    run(apt().args(["update", "-qq"]))?;
    run(apt().args(["install", "-y", "-qq", "--no-install-recommends", package]))
}

/// The places of PgBouncer.
pub const POOLERS: [&str; 3] =
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];

/// Returns the directory with the programs of the newest PostgreSQL in the places of Debian and in `PATH`.
pub fn find_programs() -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for version in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        places.push(version.path().join("bin"));
    }
    places.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = std::env::split_paths(&path).collect();
    all.append(&mut places);
    all.into_iter()
        .rev()
        .find(|place| ["initdb", "postgres"].iter().all(|program| place.join(program).exists()))
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| error.to_string())
}

/// Whether the server has written that it accepts connections.
fn is_ready(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.lines().nth(7).map(str::trim) == Some("ready"))
}

/// Returns the state and the parent of a process.
fn status(process: Pid) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // The name is in parentheses and may contain any character.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn is_running(process: Pid) -> bool {
    // A zombie has released everything.
    status(process).is_some_and(|(state, _)| state != 'Z' && state != 'X')
}

fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|process| status(*process).is_some_and(|(_, of)| of == parent))
        .collect()
}

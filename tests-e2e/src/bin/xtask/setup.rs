//! Installs the programs that the tests start, or says how to install them.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use tests_servers::{postgres, s3};

use super::checks::{StepOutcome, StepResult, cargo};

/// A program that the tests start.
struct Need {
    name: &'static str,
    purpose: &'static str,
    /// The packages of Debian and Ubuntu.
    packages: &'static [&'static str],
    is_met: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        name: "Node.js",
        purpose: "runs old CLIs and an official SDK",
        packages: &["nodejs"],
        is_met: || runs("node", &["--version"]),
    },
    Need {
        name: "npm",
        purpose: "installs the CLIs under test and an official SDK",
        packages: &["npm"],
        is_met: || runs("npm", &["--version"]),
    },
    Need {
        name: "Python with pip",
        purpose: "downloads an official SDK",
        packages: &["python3", "python3-pip"],
        is_met: || runs("python3", &["-m", "pip", "--version"]),
    },
    Need {
        name: "Python's venv",
        purpose: "installs servers with the S3 API",
        packages: &["python3-venv"],
        is_met: || no_s3() || runs("python3", &["-c", "import ensurepip, venv"]),
    },
    Need {
        name: "PostgreSQL",
        purpose: "is a session store under test",
        packages: &["postgresql"],
        is_met: has_postgres,
    },
    Need {
        name: "PgBouncer",
        purpose: "is a pooler in front of that store",
        packages: &["pgbouncer"],
        is_met: has_pooler,
    },
    Need {
        name: "OpenSSL",
        purpose: "creates the certificates of servers",
        packages: &["openssl"],
        is_met: || (no_postgres() && no_s3()) || runs("openssl", &["version"]),
    },
    Need {
        name: "Git",
        purpose: "creates work trees",
        packages: &["git"],
        is_met: || runs("git", &["--version"]),
    },
    Need {
        name: "setpriv and unshare",
        purpose: "start programs with other privileges, and without a network",
        packages: &["util-linux"],
        is_met: || {
            let programs = ["setpriv", "unshare"];
            !cfg!(target_os = "linux") || programs.iter().all(|it| runs(it, &["--version"]))
        },
    },
    Need {
        name: "kill",
        purpose: "sends signals",
        packages: &["procps"],
        is_met: || cfg!(windows) || runs("kill", &["-L"]),
    },
];

/// The parts of Rust that a minimal installation lacks, and arguments of cargo that need them.
const COMPONENTS: [(&str, &[&str]); 2] =
    [("rustfmt", &["fmt", "--version"]), ("clippy", &["clippy", "--version"])];

/// Whether this user may install packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    Root,
    /// With sudo, which asks for no password.
    Sudo,
    No,
    /// There is no apt-get.
    NoPackages,
}

/// What to do about missing programs.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// Print these lines and run these commands.
    Install {
        lines: Vec<String>,
        commands: Vec<Vec<String>>,
    },
    /// Print this, and stop.
    Stop(String),
}

/// Decides what to do about missing programs.
fn plan(missing: &[&Need], permission: Permission) -> Plan {
    if missing.is_empty() {
        return Plan::Nothing;
    }
    let names: Vec<&str> = missing.iter().map(|need| need.name).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    let install = ["install", "-y", "--no-install-recommends"];
    let words = |prefix: &[&str], arguments: &[&[&str]]| -> Vec<String> {
        prefix.iter().chain(arguments.concat().iter()).map(|&word| word.to_owned()).collect()
    };
    let prefix: &[&str] = match permission {
        Permission::Root => &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"],
        Permission::Sudo => &["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"],
        Permission::No => {
            return Plan::Stop(format!(
                "the tests need {}; help: install what is missing with this command:\n\
                 sudo apt-get update && sudo apt-get {} {}",
                names.join(", "),
                install.join(" "),
                packages.join(" ")
            ));
        }
        Permission::NoPackages => {
            return Plan::Stop(format!(
                "the tests need {}, and this system has no apt-get; help: install them with its package manager",
                names.join(", ")
            ));
        }
    };
    let line = |need: &&Need| {
        format!("installing {} ({}), which {}", need.name, need.packages.join(" "), need.purpose)
    };
    Plan::Install {
        lines: missing.iter().map(line).collect(),
        commands: vec![
            words(prefix, &[&["update", "-qq"]]),
            words(prefix, &[&install, &["-qq"], &packages]),
        ],
    }
}

/// Installs what is missing, or says how to.
pub(crate) fn run() -> StepResult {
    match plan(&missing(), permission()) {
        Plan::Nothing => {}
        Plan::Stop(text) => {
            println!("{text}");
            return Ok(StepOutcome::Failed);
        }
        Plan::Install { lines, commands } => {
            for line in lines {
                println!("{line}");
            }
            for words in commands {
                let mut command = Command::new(&words[0]);
                // apt-get lists every package that it unpacks.
                command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
                if !command.status()?.success() {
                    println!("`{}` failed", words.join(" "));
                    return Ok(StepOutcome::Failed);
                }
            }
            let missing: Vec<&str> = missing().iter().map(|need| need.name).collect();
            if !missing.is_empty() {
                println!("still missing after the installation: {}", missing.join(", "));
                return Ok(StepOutcome::Failed);
            }
        }
    }
    add_components()?;
    Ok(StepOutcome::Passed)
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !(need.is_met)()).collect()
}

fn permission() -> Permission {
    if !runs("apt-get", &["--version"]) {
        Permission::NoPackages
    } else if is_root() {
        Permission::Root
    } else if runs("sudo", &["-n", "true"]) {
        Permission::Sudo
    } else {
        Permission::No
    }
}

/// Adds the parts of Rust that are missing. Without rustup, the steps that need them fail.
fn add_components() -> Result<(), Box<dyn Error>> {
    for (component, arguments) in COMPONENTS {
        let mut command = cargo(arguments);
        if command.output()?.status.success() || !runs("rustup", &["--version"]) {
            continue;
        }
        println!("installing {component} with rustup");
        Command::new("rustup").args(["component", "add", component]).status()?;
    }
    Ok(())
}

/// Whether a program can be started and succeeds.
fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn no_postgres() -> bool {
    postgres::is_skipped()
}

#[cfg(target_os = "linux")]
fn no_s3() -> bool {
    s3::is_skipped()
}

#[cfg(target_os = "linux")]
fn has_postgres() -> bool {
    no_postgres() || postgres::find_programs().is_some()
}

#[cfg(target_os = "linux")]
fn has_pooler() -> bool {
    no_postgres() || postgres::POOLERS.iter().any(|path| Path::new(path).exists())
}

// The tests on servers run on Linux only.
#[cfg(not(target_os = "linux"))]
fn no_postgres() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn no_s3() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn has_postgres() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn has_pooler() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(names: &[&str]) -> Vec<&'static Need> {
        NEEDS.iter().filter(|need| names.contains(&need.name)).collect()
    }

    #[test]
    fn nothing_is_installed_if_nothing_is_missing() {
        for permission in
            [Permission::Root, Permission::Sudo, Permission::No, Permission::NoPackages]
        {
            assert_eq!(plan(&[], permission), Plan::Nothing);
        }
    }

    #[test]
    fn missing_programs_are_installed_with_one_line_each() {
        let missing = needs(&["npm", "Python with pip"]);
        for (permission, prefix) in [(Permission::Root, ""), (Permission::Sudo, "sudo -n ")] {
            let Plan::Install { lines, commands } = plan(&missing, permission) else {
                panic!("{permission:?} may install");
            };
            assert_eq!(
                lines,
                [
                    "installing npm (npm), which installs the CLIs under test and an official SDK",
                    "installing Python with pip (python3 python3-pip), which downloads an official SDK",
                ]
            );
            let commands: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
            let apt = format!("{prefix}env DEBIAN_FRONTEND=noninteractive apt-get");
            assert_eq!(
                commands,
                [
                    format!("{apt} update -qq"),
                    format!("{apt} install -y --no-install-recommends -qq npm python3 python3-pip"),
                ]
            );
        }
    }

    #[test]
    fn without_permission_one_command_that_installs_all_is_printed() {
        let missing = needs(&["Node.js", "npm", "PostgreSQL", "PgBouncer"]);
        assert_eq!(
            plan(&missing, Permission::No),
            Plan::Stop(
                "the tests need Node.js, npm, PostgreSQL, PgBouncer; help: install what is missing with this \
                 command:\nsudo apt-get update && sudo apt-get install -y --no-install-recommends nodejs npm \
                 postgresql pgbouncer"
                    .into()
            )
        );
    }

    #[test]
    fn without_apt_get_the_missing_programs_are_named() {
        assert_eq!(
            plan(&needs(&["npm"]), Permission::NoPackages),
            Plan::Stop(
                "the tests need npm, and this system has no apt-get; help: install them with its package manager"
                    .into()
            )
        );
    }
}

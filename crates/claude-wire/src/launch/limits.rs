//! The size limits of the command line.

use super::CommandLine;
use super::check::Problems;

/// The size limits of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of an argument or a variable, in bytes.
    pub one: usize,
    /// The maximum size of all arguments and variables together, in bytes.
    pub all: usize,
}

impl Limits {
    /// Linux: 128 KiB each, and a quarter of the usual 8 MiB stack in all.
    pub const LINUX: Self = Self { one: 128 * 1024, all: 2 * 1024 * 1024 };
    /// macOS: 1 MiB in all.
    pub const MACOS: Self = Self { one: 1024 * 1024, all: 1024 * 1024 };
    /// Windows: 32,767 characters in all.
    pub const WINDOWS: Self = Self { one: 32_767, all: 32_767 };

    /// The limits of the target platform.
    pub const fn here() -> Self {
        if cfg!(windows) {
            Self::WINDOWS
        } else if cfg!(target_os = "macos") {
            Self::MACOS
        } else {
            Self::LINUX
        }
    }

    /// Checks that a command line fits, together with `inherited` bytes of environment.
    ///
    /// # Errors
    /// If it does not fit; the problem contains the largest part.
    pub fn check(&self, command: &CommandLine, inherited: usize) -> Result<(), Problems> {
        // Each string ends with a NUL, and a pointer to it counts too.
        const OVERHEAD: usize = 1 + size_of::<usize>();
        let end = command.arguments.iter().position(|argument| argument == "--");
        let (flags, prompt) = command.arguments.split_at(end.unwrap_or(command.arguments.len()));
        let mut parts: Vec<(&str, &str, usize)> = Vec::new();
        for argument in flags {
            parts.push(("argument ", flag(argument), argument.len()));
        }
        for argument in prompt {
            // The prompt is never shown, even if it looks like a flag.
            parts.push(("", "the prompt", argument.len()));
        }
        for (name, value) in &command.set {
            parts.push((VARIABLE, name, name.len() + 1 + value.expose().len()));
        }
        let mut sum = 0;
        let (mut kind, mut name, mut size) = ("", "", 0);
        for (part_kind, part, part_size) in parts {
            sum += part_size + OVERHEAD;
            if part_size >= size {
                (kind, name, size) = (part_kind, part, part_size);
            }
        }
        // The limit of one string counts its NUL.
        if size + 1 > self.one {
            return Err(Problems::one(&["arguments"], too_long(kind, name, size, self.one)));
        }
        if sum + inherited > self.all {
            let reason = format!(
                "arguments and environment have {} bytes, but the system limit is {}; help: shorten the \
                 largest part, {kind}{name} with {size} bytes",
                sum + inherited,
                self.all
            );
            return Err(Problems::one(&["arguments"], reason));
        }
        Ok(())
    }
}

/// The kind of a part that is an environment variable.
const VARIABLE: &str = "environment variable ";

fn too_long(kind: &str, name: &str, size: usize, limit: usize) -> String {
    let help = match name {
        _ if kind == VARIABLE => "shorten it, or pass the path of a file",
        "--mcp-config" => "put the servers into a file (`mcp_config_files`)",
        "--settings" => "put the settings into a file",
        "--system-prompt" | "--append-system-prompt" | "--json-schema" | "the prompt" => {
            "without `print_mode` it is not an argument"
        }
        _ => "shorten it",
    };
    format!("{kind}{name} has {size} bytes, but the system limit is {}; help: {help}", limit - 1)
}

/// Returns the flag of an argument, without its value.
fn flag(argument: &str) -> &str {
    argument.split('=').next().unwrap_or(argument)
}

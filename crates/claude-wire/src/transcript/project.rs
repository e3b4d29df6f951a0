//! How project folders are named.

/// The longest name before a hash takes the place of the rest, in UTF-16 units.
const MAX_NAME: usize = 200;

/// Returns the name of the folder below `projects` in which the CLI keeps the transcripts of a
/// working directory.
///
/// `path` must be canonical: absolute, with symbolic links resolved, and on macOS in Unicode
/// normalization form C. Each UTF-16 unit other than an ASCII letter or digit becomes `-`. A name
/// longer than 200 is cut, and a hash of the path is appended.
///
/// The mapping loses information: `/w/p` and `/w-p` share a folder. To find out where a session
/// ran, read `cwd` from its entries.
///
/// ```
/// use claude_wire::transcript::project_folder_name;
///
/// assert_eq!(project_folder_name("/home/user/my.app"), "-home-user-my-app");
/// ```
pub fn project_folder_name(path: &str) -> String {
    let name = sanitized(path);
    if name.len() <= MAX_NAME {
        return name;
    }
    format!("{}-{}", &name[..MAX_NAME], base36(path_hash(path).unsigned_abs()))
}

/// Returns the beginning that the folders of a long path share: the hash behind it differs between
/// versions of the CLI. `None` for paths whose name is not cut.
pub fn project_folder_prefix(path: &str) -> Option<String> {
    let name = sanitized(path);
    (name.len() > MAX_NAME).then(|| format!("{}-", &name[..MAX_NAME]))
}

/// Returns whether two paths have the same name once they are sanitized, before any cut.
pub fn is_same_project_name(one: &str, other: &str) -> bool {
    sanitized(one) == sanitized(other)
}

/// Returns whether `name` can be given as `CLAUDE_CODE_PROJECT_DIR_NAME`, which replaces the name
/// for every working directory: 1 to 64 characters of `[A-Za-z0-9_-]`, and not the name of a
/// Windows device. The CLI ignores the variable unless `CLAUDE_CONFIG_DIR` is set too.
pub fn is_project_folder_override(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_port = ["com", "lpt"].iter().any(|port| {
        lower.strip_prefix(port).is_some_and(|digit| {
            digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !is_port
        && !["con", "prn", "aux", "nul"].contains(&lower.as_str())
}

fn sanitized(path: &str) -> String {
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    path.encode_utf16().map(unit).collect()
}

/// The hash that JavaScript programs commonly use: `h * 31 + unit` in 32 bits.
fn path_hash(path: &str) -> i32 {
    path.encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

//! The sandbox in which the CLI runs commands.

use super::merge::merge_sandbox;
use super::settings::{Settings, SettingsSource};
use crate::json::{Json, Map};
use crate::schema::Encode;

settings_struct! {
    /// The sandbox in which the CLI runs commands. Merged into the sandbox in `settings`.
    pub struct Sandbox {
        /// Whether commands run in it.
        one enabled: bool,
        /// Whether the CLI fails to start if no sandbox is available. Default: true if the sandbox is
        /// enabled.
        one fail_if_unavailable: bool as "failIfUnavailable",
        /// Whether commands in the sandbox run without asking.
        one auto_allow_bash_if_sandboxed: bool as "autoAllowBashIfSandboxed",
        /// Whether the model may run a command outside of it, with a permission.
        one allow_unsandboxed_commands: bool as "allowUnsandboxedCommands",
        /// The network access of commands.
        one network: SandboxNetwork,
        /// The file system access of commands.
        one filesystem: SandboxFilesystem,
        /// Which credentials commands do not see.
        one credentials: SandboxCredentials,
        /// Violations that are not reported: paths by command pattern.
        one ignore_violations: Map<Vec<String>> as "ignoreViolations",
        /// Whether a weaker sandbox is sufficient inside a container (Linux).
        one enable_weaker_nested_sandbox: bool as "enableWeakerNestedSandbox",
        /// Whether commands may make user namespaces (Linux).
        one allow_nested_user_namespaces: bool as "allowNestedUserNamespaces",
        /// Whether a weaker network isolation is sufficient (macOS).
        one enable_weaker_network_isolation: bool as "enableWeakerNetworkIsolation",
        /// Whether commands may send Apple events (macOS).
        one allow_apple_events: bool as "allowAppleEvents",
        /// Commands that run outside of it.
        list excluded_commands: String as "excludedCommands",
        /// The `ripgrep` to use.
        one ripgrep: SandboxRipgrep,
        /// Where `bwrap` is (Linux).
        one bwrap_path: String as "bwrapPath",
        /// Where `socat` is (Linux).
        one socat_path: String as "socatPath",
    }
}

settings_struct! {
    /// The network access of commands in the sandbox.
    pub struct SandboxNetwork {
        /// Domains that they reach.
        list allowed_domains: String as "allowedDomains",
        /// Domains that they do not reach, whatever else is allowed.
        list denied_domains: String as "deniedDomains",
        /// Whether other domains are denied without a prompt.
        one strict_allowlist: bool as "strictAllowlist",
        /// Whether only the domains that managed settings allow are reached.
        one allow_managed_domains_only: bool as "allowManagedDomainsOnly",
        /// Unix sockets that they reach (macOS).
        list allow_unix_sockets: String as "allowUnixSockets",
        /// Whether they reach every Unix socket.
        one allow_all_unix_sockets: bool as "allowAllUnixSockets",
        /// Whether they may listen on local ports.
        one allow_local_binding: bool as "allowLocalBinding",
        /// Mach services that they may look up (macOS).
        list allow_mach_lookup: String as "allowMachLookup",
        /// The port of a proxy of the host's for HTTP.
        one http_proxy_port: u16 as "httpProxyPort",
        /// The port of a proxy of the host's for SOCKS.
        one socks_proxy_port: u16 as "socksProxyPort",
        /// The certificate with which the CLI decrypts TLS traffic.
        one tls_terminate: SandboxTls as "tlsTerminate",
    }
}

settings_struct! {
    /// The certificate with which the CLI decrypts TLS traffic of the sandbox.
    pub struct SandboxTls {
        /// The file with the certificate.
        one ca_cert_path: String as "caCertPath",
        /// The file with its key.
        one ca_key_path: String as "caKeyPath",
    }
}

settings_struct! {
    /// The file system access of commands in the sandbox.
    pub struct SandboxFilesystem {
        /// Where they may write.
        list allow_write: String as "allowWrite",
        /// Where they may not write, whatever else is allowed.
        list deny_write: String as "denyWrite",
        /// What they may not read.
        list deny_read: String as "denyRead",
        /// Exceptions that they may read.
        list allow_read: String as "allowRead",
        /// Whether only managed settings allow reading.
        one allow_managed_read_paths_only: bool as "allowManagedReadPathsOnly",
        /// Whether the file system is not limited at all.
        one disabled: bool,
    }
}

settings_struct! {
    /// Which credentials commands in the sandbox do not see.
    pub struct SandboxCredentials {
        /// Files with credentials.
        list files: SandboxCredential,
        /// Variables with credentials.
        list env_vars: SandboxCredential as "envVars",
        /// Whether a masked credential may be put into traffic that is not encrypted.
        one allow_plaintext_inject: bool as "allowPlaintextInject",
        /// Variables that make up credentials of AWS, in the format of the CLI.
        list aws_pairs: Json as "awsPairs",
        /// The handling of requests signed for AWS, in the format of the CLI.
        one sigv4: Json,
    }
}

settings_struct! {
    /// A file or a variable with a credential.
    pub struct SandboxCredential {
        /// The file.
        one path: String,
        /// The variable.
        one name: String,
        /// Whether the credential is hidden or masked.
        one mode: CredentialMode,
        /// The pattern that finds the credential in the text.
        one extract: String,
        /// What happens if it is not found: `warn`, `deny` or `error`.
        one on_extract_no_match: String as "onExtractNoMatch",
        /// How it is encoded: `jwt`.
        one decode: String,
        /// Which claims of it are masked.
        list mask_claims: String as "maskClaims",
        /// Whether it is masked everywhere else (files only).
        one mask_duplicates: bool as "maskDuplicates",
        /// The hosts that receive the real credential.
        list inject_hosts: String as "injectHosts",
    }
}

impl SandboxCredential {
    /// Creates a rule for this file.
    pub fn file(path: impl Into<String>, mode: impl Into<CredentialMode>) -> Self {
        Self::default().path(path).mode(mode)
    }

    /// Creates a rule for this variable.
    pub fn variable(name: impl Into<String>, mode: impl Into<CredentialMode>) -> Self {
        Self::default().name(name).mode(mode)
    }
}

open_enum! {
    /// What commands in the sandbox see of a credential.
    pub enum CredentialMode {
        /// Nothing.
        Deny = "deny",
        /// A placeholder.
        Mask = "mask",
    }
}

settings_struct! {
    /// The `ripgrep` that the sandbox uses.
    pub struct SandboxRipgrep {
        /// The program.
        one command: String,
        /// Its arguments.
        list args: String,
    }
}

/// Merges the sandbox into the CLI settings. A sandbox together with a settings file was rejected
/// before.
pub(super) fn settings_with_sandbox(settings: &Settings) -> Option<SettingsSource> {
    let Some(sandbox) = &settings.sandbox else { return settings.settings.clone() };
    let mut all = match &settings.settings {
        Some(SettingsSource::Value(value)) => value.deserialize().unwrap_or_default(),
        Some(SettingsSource::File(_)) | None => serde_json::Value::default(),
    };
    if !all.is_object() {
        all = serde_json::json!({});
    }
    let sandbox = Json::from_view(sandbox.view()).deserialize().unwrap_or_default();
    let place = &mut all["sandbox"];
    merge_sandbox(place, sandbox);
    // Running silently without a requested sandbox would be dangerous.
    if place["enabled"] == true && place["failIfUnavailable"].is_null() {
        place["failIfUnavailable"] = true.into();
    }
    Some(SettingsSource::Value(all.into()))
}

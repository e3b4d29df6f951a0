//! Values of launch options that few programs set: the sandbox, the CLI's own settings, the environment
//! policy, debug output.

pub use crate::launch::cli_settings::{CliSettings, PermissionSettings};
pub use crate::launch::environment::EnvironmentPolicy;
pub use crate::launch::extensions::{McpDelivery, PluginDelivery};
pub use crate::launch::include::DebugLog;
pub use crate::launch::sandbox::{
    CredentialMode, Sandbox, SandboxCredential, SandboxCredentials, SandboxFilesystem,
    SandboxNetwork, SandboxRipgrep, SandboxTls,
};
pub use crate::launch::settings::{
    ManagedSettings, PermissionPrompts, PreviewFormat, SYSTEM_PROMPT_BOUNDARY, SettingsSource,
    SystemPromptBase,
};
pub use crate::launch::thinking::ThinkingDisplay;

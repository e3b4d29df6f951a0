//! Every published message, with every published field: none of them is without a name.

use claude_wire::message::{ResultSubtype, SystemMessage, TerminalReason};
use claude_wire::{Body, Message};
use serde_json::{Value, json};

/// An object with these fields, and nothing in them.
fn fields(names: &str) -> Value {
    Value::Object(names.split_whitespace().map(|name| (name.to_owned(), Value::Null)).collect())
}

/// One line per message: its type and subtype, its plain fields, and those with parts of their own.
fn published() -> Vec<(&'static str, &'static str, Value)> {
    let mut all = conversation();
    all.extend(beside());
    all.extend(state());
    all.extend(tasks_and_notices());
    all
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn conversation() -> Vec<(&'static str, &'static str, Value)> {
    let context = json!({"model": "m", "total_tokens": 1, "raw_max_tokens": 1, "percentage": 1,
        "over_limit": fields("tokens_over kind"), "categories": [fields("name tokens kind")],
        "mcp_tools": [fields("name server_name tokens")],
        "memory_files": [fields("path type tokens")], "agents": [fields("agent_type source tokens")],
        "skills": [fields("name source plugin_name tokens")]});
    let limit = json!({"kind": "k", "group": "g", "percent": 1, "resets_at": "t", "severity": "s",
        "is_active": true, "scope": fields("model surface")});
    let usage = json!({"session": fields("total_cost_usd total_api_duration_ms total_duration_ms \
        total_lines_added total_lines_removed model_usage"),
        "rate_limits": {"limits": [limit], "extra_usage": {}}});
    let origin = fields(
        "server from fromMode name fromSession senderTaskId body verifiedPeerPid \
        subkind fireReason runId kind",
    );
    let model = fields(
        "inputTokens outputTokens thinkingTokens cacheReadInputTokens \
        cacheCreationInputTokens cacheCreationEphemeral5mInputTokens \
        cacheCreationEphemeral1hInputTokens webSearchRequests costUSD contextWindow \
        maxOutputTokens canonicalModel provider costBasis",
    );
    vec![
        (
            "assistant",
            "message parent_tool_use_id error request_id user_message_uuid \
          user_message_uuids resume_reason resumed_from_incomplete_thinking supersedes aborted \
          agent_id subagent_type task_description timestamp",
            json!({"context_usage": context, "usage_report": usage}),
        ),
        (
            "user",
            "message parent_tool_use_id isSynthetic tool_use_result priority shouldQuery \
          timestamp client_composed pasted_content inline_pastes agent_id subagent_type \
          task_description isReplay file_attachments",
            json!({"origin": origin}),
        ),
        (
            "result/success",
            "duration_ms duration_api_ms is_error num_turns result stop_reason \
          total_cost_usd usage ttft_ms ttft_stream_ms time_to_request_ms user_message_uuid \
          user_message_uuids resume_reason local_command request_sent_wall_ms \
          first_content_frame_ms first_stream_post_ms first_stream_post_ack_ms \
          first_stream_post_queue_wait_ms first_stream_post_queued_behind \
          first_stream_post_wall_ms first_text_post_ms first_text_post_queue_wait_ms \
          first_text_post_queued_behind first_text_post_wall_ms time_to_request_from_spawn_ms \
          warm_spare_claimed time_origin_ms api_error_status queued_turn_count structured_output \
          terminal_reason result_index credential_expires_at fast_mode_state \
          fast_mode_disabled_reason",
            json!({"modelUsage": {"m": model}, "origin": origin,
                "permission_denials": [fields("tool_name tool_use_id tool_input")],
                "deferred_tool_use": fields("id name input")}),
        ),
        (
            "result/error_during_execution",
            "errors startup_failure_reason",
            json!({"invalid_config_file": fields("path is_global backup_searched backup_path")}),
        ),
        (
            "stream_event",
            "event parent_tool_use_id ttft_ms user_message_uuid user_message_uuids \
          resume_reason",
            json!({}),
        ),
    ]
}

fn beside() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            "rate_limit_event",
            "",
            json!({"rate_limit_info": fields("status resetsAt rateLimitType \
          utilization overageStatus overageResetsAt overageDisabledReason isUsingOverage \
          overageInUse overageEnabled surpassedThreshold limitScope errorCode \
          canUserPurchaseCredits hasChargeableSavedPaymentMethod")}),
        ),
        (
            "tool_progress",
            "tool_use_id tool_name parent_tool_use_id elapsed_time_seconds task_id \
          heartbeat subagent_type",
            json!({"subagent_retry": fields("agent_id attempt max_retries \
          retry_delay_ms error_status error_category")}),
        ),
        ("tool_use_summary", "summary preceding_tool_use_ids", json!({})),
        ("auth_status", "isAuthenticating output error", json!({})),
        ("prompt_suggestion", "suggestion", json!({})),
        (
            "conversation_reset",
            "new_conversation_id trigger user_message_uuid timestamp",
            json!({}),
        ),
        (
            "active_goal",
            "",
            json!({"value": fields("condition iterations set_at tokens_at_start \
          last_reason")}),
        ),
        (
            "autocompact_state",
            "",
            json!({"value": fields("enabled effective_window threshold \
          enforced source")}),
        ),
        ("command_lifecycle", "command_uuid state", json!({})),
        (
            "attachment",
            "parent_tool_use_id timestamp",
            json!({"attachment": {"type": "hook_success", "hookEvent": "PreToolUse"}}),
        ),
    ]
}

fn state() -> Vec<(&'static str, &'static str, Value)> {
    let lock = fields("plugin_enabled name marketplace");
    vec![
        (
            "system/init",
            "agents apiKeySource betas claude_code_version cwd tools model \
          permissionMode slash_commands terminal_slash_commands output_style skills \
          fast_mode_state fast_mode_disabled_reason effort view_mode capabilities",
            json!({"mcp_servers": [fields("name status source")],
                "plugins": [fields("name path version")],
                "plugin_errors": [{"plugin": "p", "type": "t", "message": "m", "path": "p",
                                   "managed_lock": lock}]}),
        ),
        ("system/session_state_changed", "state sdk_host_only", json!({})),
        ("system/status", "status permissionMode compact_result compact_error", json!({})),
        (
            "system/compact_boundary",
            "",
            json!({"compact_metadata": {"trigger": "auto",
          "pre_tokens": 1, "post_tokens": 1, "duration_ms": 1,
          "preserved_segment": fields("head_uuid anchor_uuid tail_uuid"),
          "preserved_messages": fields("anchor_uuid uuids")}}),
        ),
        (
            "system/api_retry",
            "attempt max_retries retry_delay_ms error_status error",
            json!({"no_response": fields("waited_ms retry_wait_ms")}),
        ),
        (
            "system/control_request_progress",
            "request_id status attempt max_retries \
          retry_delay_ms error_status",
            json!({}),
        ),
        (
            "system/model_refusal_fallback",
            "trigger direction scope original_model fallback_model \
          request_id api_refusal_category api_refusal_explanation retracted_message_uuids \
          refused_user_message_uuid content",
            json!({}),
        ),
        (
            "system/model_refusal_no_fallback",
            "original_model request_id api_refusal_category \
          api_refusal_explanation refused_user_message_uuid content",
            json!({}),
        ),
        (
            "system/thinking_tokens",
            "estimated_tokens estimated_tokens_delta user_message_uuid",
            json!({}),
        ),
        ("system/worker_shutting_down", "reason", json!({})),
        ("system/session_writes_lost", "error_code lost transcript_session_ids", json!({})),
        ("system/session_title_changed", "title", json!({})),
        ("system/post_turn_summary", "", json!({})),
        ("system/task_summary", "", json!({})),
        ("system/session_metadata", "", json!({})),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn tasks_and_notices() -> Vec<(&'static str, &'static str, Value)> {
    let usage = fields("total_tokens tool_uses duration_ms");
    vec![
        ("system/local_command_output", "content", json!({})),
        ("system/hook_started", "hook_id hook_name hook_event", json!({})),
        ("system/hook_progress", "hook_id hook_name hook_event stdout stderr output", json!({})),
        (
            "system/hook_response",
            "hook_id hook_name hook_event output stdout stderr exit_code \
          outcome",
            json!({}),
        ),
        ("system/plugin_install", "status name error", json!({})),
        (
            "system/task_started",
            "task_id run_id tool_use_id description subagent_type \
          is_backgrounded spawn_depth parent_task_id task_type workflow_name prompt \
          skip_transcript ambient",
            json!({}),
        ),
        (
            "system/task_progress",
            "task_id run_id tool_use_id description subagent_type \
          last_tool_name summary",
            json!({"usage": usage}),
        ),
        (
            "system/task_updated",
            "task_id run_id",
            json!({"patch": fields("status description \
          end_time total_paused_ms error is_backgrounded")}),
        ),
        (
            "system/task_notification",
            "task_id run_id tool_use_id status reason output_file \
          summary resource_links skip_transcript ambient",
            json!({"usage": usage}),
        ),
        (
            "system/background_tasks_changed",
            "",
            json!({"tasks": [fields("task_id run_id \
          task_type subagent_type description parent_task_id ambient")]}),
        ),
        ("system/commands_changed", "commands", json!({})),
        ("system/notification", "key text priority color timeout_ms", json!({})),
        (
            "system/files_persisted",
            "processed_at",
            json!({"files": [fields("filename file_id")],
          "failed": [fields("filename error")]}),
        ),
        ("system/memory_recall", "mode", json!({"memories": [fields("path scope content")]})),
        ("system/elicitation_complete", "mcp_server_name elicitation_id", json!({})),
        (
            "system/permission_denied",
            "tool_name tool_use_id agent_id decision_reason_type \
          decision_reason message",
            json!({}),
        ),
        ("system/mirror_error", "error", json!({"key": fields("projectKey sessionId subpath")})),
        ("system/informational", "content level tool_use_id prevent_continuation tag", json!({})),
    ]
}

#[test]
fn every_published_field_of_every_message_has_a_name() {
    let published = published();
    for (kind, names, more) in &published {
        let mut line = fields(names);
        let object = line.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        let (kind, subtype) = kind.split_once('/').unwrap_or((kind, ""));
        object.insert("type".to_owned(), kind.into());
        object.insert("uuid".to_owned(), Value::Null);
        object.insert("session_id".to_owned(), Value::Null);
        if !subtype.is_empty() {
            object.insert("subtype".to_owned(), subtype.into());
        }
        let message = Message::decode(line.to_string()).unwrap();
        let told = format!("{:?}", message.body);
        assert!(message.undecodable().is_none(), "{told}");
        assert!(!told.contains("Extra(Some("), "{kind}/{subtype}: {told}");
    }
    let known = Body::KNOWN.iter().filter(|kind| **kind != "system").copied();
    let subtypes = SystemMessage::KNOWN.iter().map(|subtype| format!("system/{subtype}"));
    for kind in known.map(str::to_owned).chain(subtypes) {
        let listed = published
            .iter()
            .any(|(name, ..)| *name == kind || name.starts_with(&format!("{kind}/")));
        assert!(listed, "{kind} is typed and not in this table");
    }
}

#[test]
fn published_values_are_known() {
    for (known, published) in [
        (
            ResultSubtype::KNOWN,
            "success error_during_execution error_max_turns \
            error_max_budget_usd error_max_structured_output_retries",
        ),
        (
            TerminalReason::KNOWN,
            "blocking_limit rapid_refill_breaker prompt_too_long image_error \
            model_error api_error malformed_tool_use_exhausted aborted_streaming aborted_tools \
            stop_hook_prevented hook_stopped tool_deferred max_turns background_requested \
            completed budget_exhausted structured_output_retry_exhausted \
            tool_deferred_unavailable turn_setup_failed",
        ),
        (
            claude_wire::message::AssistantError::KNOWN,
            "authentication_failed \
            oauth_org_not_allowed account_on_hold verification_required billing_error rate_limit \
            overloaded invalid_request model_not_found server_error unknown max_output_tokens \
            cloud_credential_error",
        ),
        (
            claude_wire::message::OriginKind::KNOWN,
            "human channel peer task-notification \
            coordinator unclassified observer auto-continuation observer-activity",
        ),
        (
            claude_wire::message::StartupFailure::KNOWN,
            "org_pin_api_key_conflict \
            provider_not_allowed org_verify_failed org_pin_mismatch managed_settings_invalid \
            remote_settings_required_unavailable gateway_signin_required gateway_access_denied \
            proxy_invalid temp_dir_unusable cwd_unavailable shell_tool_missing \
            session_held_by_background worktree_resume_refused worktree_unverified \
            cli_version_too_old bypass_root org_config_required_unavailable org_config_refused \
            sandbox_required_unavailable initialize_not_first config_file_invalid \
            managed_settings_not_delivered",
        ),
    ] {
        for word in published.split_whitespace() {
            assert!(known.contains(&word), "{word}");
        }
    }
}

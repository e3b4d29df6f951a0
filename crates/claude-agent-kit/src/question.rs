//! Questions of the model to the user.
//!
//! A call of the tool `AskUserQuestion` arrives as a permission request, regardless of the permission
//! mode and the rules; the answers are sent back as its arguments.

use claude_wire::tool_input::{AskUserQuestionInput, Question};
use claude_wire::{Extra, Json};
use serde::{Serialize, Serializer};

use crate::callback::{BoxError, CallResult, IntoCallbackResult, error_text, sealed};
use crate::permission::{self, Permission};
use claude_session_store::json_object::JsonObject;

/// The tool with which the model asks.
pub(crate) use claude_agent_core::session::QUESTION_TOOL as TOOL;

/// The questions of one call of the tool, one to four.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Questions {
    /// The questions.
    pub questions: Vec<Question>,
    /// The unmodified arguments of the tool.
    pub raw: Json,
}

impl Serialize for Questions {
    /// `{"type":"questions","questions":[{"question":…,"header":…,"options":[{"label":…,
    /// "description":…,"preview":…}],"multiSelect":false}]}`, with the questions as the model asked them.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "questions")?;
        object.field("questions", &self.questions)?;
        object.end()
    }
}

impl Questions {
    /// Returns an iterator over the questions.
    pub fn iter(&self) -> std::slice::Iter<'_, Question> {
        self.questions.iter()
    }

    pub(crate) fn read(raw: Json) -> Result<Self, String> {
        let input: AskUserQuestionInput = raw
            .deserialize()
            .map_err(|error| format!("cannot decode the questions of the model: {error}"))?;
        let questions = input.questions;
        Ok(Self { questions, raw })
    }
}

impl<'a> IntoIterator for &'a Questions {
    type Item = &'a Question;
    type IntoIter = std::slice::Iter<'a, Question>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The answers of the user to the questions of the model. The model reads which questions were left
/// out.
///
/// ```
/// use claude_agent_kit::{Answers, Options};
///
/// let options = Options::new().ask_user(|questions, _ctx| async move {
///     questions.iter().fold(Answers::new(), |answers, question| {
///         match question.options.first() {
///             Some(first) => answers.answer(question, &first.label),
///             None => answers.answer(question, "whatever you like"),
///         }
///     })
/// });
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Answers {
    given: Extra,
    annotations: Extra,
    declined: Option<String>,
}

impl Answers {
    /// Creates an empty set of answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declines to answer all questions. The model reads the reason.
    pub fn decline(reason: impl Into<String>) -> Self {
        Self { declined: Some(reason.into()), ..Self::default() }
    }

    /// Answers a question with the label of an option, or with free text. Replaces an earlier answer.
    pub fn answer(mut self, question: &Question, text: impl AsRef<str>) -> Self {
        self.given.set(&question.question, text.as_ref());
        self
    }

    /// Answers a question with the labels of several options. Replaces an earlier answer.
    pub fn choose_all(
        self,
        question: &Question,
        labels: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let labels: Vec<String> =
            labels.into_iter().map(|label| label.as_ref().to_owned()).collect();
        // The CLI does not recognize the labels of its options in a JSON list.
        self.answer(question, labels.join(", "))
    }

    /// Adds a note of the user to the answer.
    pub fn note(mut self, question: &Question, text: impl AsRef<str>) -> Self {
        let mut note = Extra::default();
        note.set("notes", text.as_ref());
        self.annotations.set(&question.question, &note);
        self
    }

    fn permission(self, input: &Json) -> Result<Permission, String> {
        if let Some(reason) = self.declined {
            return Ok(Permission::deny(reason));
        }
        let mut fields: Extra = input.deserialize().map_err(|error| error.to_string())?;
        fields.set("answers", &self.given);
        if !self.annotations.is_empty() {
            fields.set("annotations", &self.annotations);
        }
        Ok(Permission::allow().with_input(&fields))
    }
}

impl sealed::Sealed for Answers {}

impl IntoCallbackResult<Answers> for Answers {
    fn into_result(self) -> Result<Answers, BoxError> {
        Ok(self)
    }
}

/// Encodes the return value of a callback.
pub(crate) fn encode_response(
    returned: impl IntoCallbackResult<Answers>,
    input: &Json,
) -> CallResult {
    let answers = returned.into_result().map_err(|error| error_text(&error))?;
    permission::encode_response(answers.permission(input)?, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = r#"{"questions":[{"question":"Which colours?","header":"Colour","options":[{"label":"Red","description":"Warm"},{"label":"Blue","description":"Cold","preview":"*"}],"multiSelect":true},{"question":"Size?","header":"Size","options":[{"label":"S","description":""},{"label":"L","description":""}],"multiSelect":false}]}"#;

    #[test]
    fn questions_are_decoded_with_their_options() {
        let questions = read(INPUT).unwrap();
        let [colours, size] = questions.questions.as_slice() else { panic!("{questions:?}") };
        assert_eq!(colours.question, "Which colours?");
        assert_eq!(colours.header.as_deref(), Some("Colour"));
        assert_eq!(colours.options[1].preview.as_deref(), Some("*"));
        assert!(colours.is_multi_select() && !size.is_multi_select());
        assert_eq!(questions.raw.text(), INPUT);
    }

    #[test]
    fn undecodable_questions_are_an_error() {
        for text in ["{}", "[]", r#"{"questions":[{"options":[]}]}"#, r#"{"questions":"?"}"#] {
            let reason = read(text).unwrap_err();
            assert!(reason.starts_with("cannot decode the questions of the model"), "{reason}");
        }
    }

    #[test]
    fn answers_are_sent_with_the_questions() {
        let questions = read(INPUT).unwrap();
        let [colours, size] = questions.questions.as_slice() else { panic!("{questions:?}") };
        let rest = &INPUT[..INPUT.len() - 1];
        for (answers, expected) in [
            (Answers::new(), r#","answers":{}}"#),
            (
                Answers::new().choose_all(colours, ["Red", "Blue"]).answer(size, "huge"),
                r#","answers":{"Which colours?":"Red, Blue","Size?":"huge"}}"#,
            ),
            (
                Answers::new().answer(size, "S").answer(size, "L").note(size, "or M"),
                r#","answers":{"Size?":"L"},"annotations":{"Size?":{"notes":"or M"}}}"#,
            ),
        ] {
            let answer = encode_response(answers, &questions.raw).unwrap();
            let expected = format!(r#"{{"behavior":"allow","updatedInput":{rest}{expected}}}"#);
            assert_eq!(answer.text(), expected);
        }
    }

    #[test]
    fn declined_questions_are_a_denial() {
        let answer = encode_response(Answers::decline("the user is away"), &Json::null()).unwrap();
        assert_eq!(answer.text(), r#"{"behavior":"deny","message":"the user is away"}"#);
    }

    fn read(text: &str) -> Result<Questions, String> {
        Questions::read(Json::from_text(text).unwrap())
    }
}

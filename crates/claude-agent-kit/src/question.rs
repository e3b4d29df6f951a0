//! Questions of the model to the user.
//!
//! The tool `AskUserQuestion` comes as a permission request, whatever the permission mode and the
//! rules say; the answers go back as its arguments.

use claude_wire::tool_input::{AskUserQuestionInput, Question};
use claude_wire::{Extra, Json};
use serde::{Serialize, Serializer};

use crate::callback::{BoxError, CallResult, IntoCallbackResult, error_text, sealed};
use crate::json_object::JsonObject;
use crate::permission::{self, Permission};

/// The tool with which the model asks.
pub(crate) use claude_wire::session::QUESTION_TOOL as TOOL;

/// What the model wants to know, one to four questions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Questions {
    /// The questions.
    pub questions: Vec<Question>,
    /// The arguments of the tool, as they came.
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
    /// The questions in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Question> {
        self.questions.iter()
    }

    pub(crate) fn read(raw: Json) -> Result<Self, String> {
        let input: AskUserQuestionInput = raw
            .deserialize()
            .map_err(|error| format!("cannot read the questions of the model: {error}"))?;
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

/// What the user says to the model's questions. A question that is left out counts as not
/// answered, and the model is told so.
///
/// ```
/// use claude_agent_kit::{Answers, Options};
///
/// let options = Options::new().ask_user(|questions, _ctx| async move {
///     questions.iter().fold(Answers::new(), |answers, question| {
///         match question.options.first() {
///             Some(first) => answers.choose(question, &first.label),
///             None => answers.say(question, "whatever you like"),
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
    /// No answers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The questions are not answered at all; the model is told this.
    pub fn decline(reason: impl Into<String>) -> Self {
        Self { declined: Some(reason.into()), ..Self::default() }
    }

    /// The user chose this.
    pub fn choose(self, question: &Question, label: impl AsRef<str>) -> Self {
        self.say(question, label)
    }

    /// The user chose all of these.
    pub fn choose_all(
        self,
        question: &Question,
        labels: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let labels: Vec<String> =
            labels.into_iter().map(|label| label.as_ref().to_owned()).collect();
        // Given as a list, the CLI no longer takes them for the choices that it offered.
        self.say(question, labels.join(", "))
    }

    /// The user said something of their own.
    pub fn say(mut self, question: &Question, text: impl AsRef<str>) -> Self {
        self.given.set(&question.question, text.as_ref());
        self
    }

    /// The user remarked this beside the answer.
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

/// The answer that a handler's return value becomes.
pub(crate) fn answered(returned: impl IntoCallbackResult<Answers>, input: &Json) -> CallResult {
    let answers = returned.into_result().map_err(|error| error_text(&error))?;
    permission::answered(answers.permission(input)?, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = r#"{"questions":[{"question":"Which colours?","header":"Colour","options":[{"label":"Red","description":"Warm"},{"label":"Blue","description":"Cold","preview":"*"}],"multiSelect":true},{"question":"Size?","header":"Size","options":[{"label":"S","description":""},{"label":"L","description":""}],"multiSelect":false}]}"#;

    #[test]
    fn questions_are_read_with_their_choices() {
        let questions = read(INPUT).unwrap();
        let [colours, size] = questions.questions.as_slice() else { panic!("{questions:?}") };
        assert_eq!(colours.question, "Which colours?");
        assert_eq!(colours.header.as_deref(), Some("Colour"));
        assert_eq!(colours.options[1].preview.as_deref(), Some("*"));
        assert!(colours.is_multi_select() && !size.is_multi_select());
        assert_eq!(questions.raw.text(), INPUT);
    }

    #[test]
    fn questions_that_make_no_sense_are_a_failure_and_not_an_empty_list() {
        for text in ["{}", "[]", r#"{"questions":[{"options":[]}]}"#, r#"{"questions":"?"}"#] {
            let reason = read(text).unwrap_err();
            assert!(reason.starts_with("cannot read the questions of the model"), "{reason}");
        }
    }

    #[test]
    fn answers_go_back_beside_the_questions() {
        let questions = read(INPUT).unwrap();
        let [colours, size] = questions.questions.as_slice() else { panic!("{questions:?}") };
        let rest = &INPUT[..INPUT.len() - 1];
        for (answers, expected) in [
            (Answers::new(), r#","answers":{}}"#),
            (
                Answers::new().choose_all(colours, ["Red", "Blue"]).say(size, "huge"),
                r#","answers":{"Which colours?":"Red, Blue","Size?":"huge"}}"#,
            ),
            (
                Answers::new().choose(size, "S").choose(size, "L").note(size, "or M"),
                r#","answers":{"Size?":"L"},"annotations":{"Size?":{"notes":"or M"}}}"#,
            ),
        ] {
            let answer = answered(answers, &questions.raw).unwrap();
            let expected = format!(r#"{{"behavior":"allow","updatedInput":{rest}{expected}}}"#);
            assert_eq!(answer.text(), expected);
        }
    }

    #[test]
    fn declined_questions_are_a_denial() {
        let answer = answered(Answers::decline("nobody is there"), &Json::null()).unwrap();
        assert_eq!(answer.text(), r#"{"behavior":"deny","message":"nobody is there"}"#);
    }

    fn read(text: &str) -> Result<Questions, String> {
        Questions::read(Json::from_text(text).unwrap())
    }
}

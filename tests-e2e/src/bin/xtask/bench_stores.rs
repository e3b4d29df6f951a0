//! Compares session stores with the official SDKs.

use std::process::ExitCode;

use claude_agent_testkit::mock_api::{Reply, Script};
use tests_e2e::bench::history::row::{Sample, Samples, ratio, time};
use tests_e2e::bench::stores::{
    Operation, StoreData, StoreKind, StorePart, StoreSizes, StoreTable, TABLES, turn,
};
use tests_e2e::bench::subject::{self, Subject};
use tests_e2e::harness::Harness;
use tests_e2e::real_cli;

use super::Outcome;

/// The number of rounds of the published figures.
const ROUNDS: usize = 5;

/// The name of the table of turns.
const TURNS: &str = "turns";

/// What the arguments select.
struct Selection {
    sizes: StoreSizes,
    rounds: usize,
    /// The names of tables; empty for all.
    tables: Vec<String>,
}

impl Selection {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut selection =
            Self { sizes: StoreSizes::PUBLISHED, rounds: ROUNDS, tables: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => (selection.sizes, selection.rounds) = (StoreSizes::QUICK, 1),
                "--rounds" => {
                    let rounds = words.next().and_then(|rounds| rounds.parse().ok());
                    selection.rounds = rounds.ok_or("`--rounds` needs a number")?;
                }
                name if name == TURNS || TABLES.iter().any(|table| table.name == name) => {
                    selection.tables.push(name.to_owned());
                }
                other => return Err(format!("unknown argument: \"{other}\"")),
            }
        }
        Ok(selection)
    }

    fn has(&self, table: &str) -> bool {
        self.tables.is_empty() || self.tables.iter().any(|name| name == table)
    }
}

/// The subjects and what they use.
struct Bench {
    subjects: [Subject; 3],
    data: StoreData,
    sizes: StoreSizes,
    rounds: usize,
}

/// Measures and prints the tables. Without targets: the figures depend on the disk and the machine.
pub(crate) fn run(words: &[String]) -> Outcome {
    let selection = Selection::parse(words)?;
    let (cli, subjects) = subject::build_stores()?;
    for subject in &subjects {
        if let Err(reason) = &subject.program {
            println!("{}: {reason}", subject.title);
        }
    }
    let data = StoreData::new(&selection.sizes, &cli)?;
    let (sizes, rounds) = (selection.sizes, selection.rounds);
    let mut bench = Bench { subjects, data, sizes, rounds };
    for table in TABLES.iter().filter(|table| selection.has(table.name)) {
        bench.operations(table)?;
    }
    if selection.has(TURNS) {
        bench.turns()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A column of a table, while it is measured.
struct Column {
    subject: usize,
    kind: StoreKind,
    samples: Samples,
    /// The part of the store that was filled last, and by which operation.
    filled: Option<(StorePart, &'static str)>,
}

impl Column {
    fn new((subject, kind): (usize, StoreKind)) -> Self {
        Self { subject, kind, samples: Samples::default(), filled: None }
    }
}

impl Bench {
    /// Returns the title of a column.
    fn title(&self, column: &Column) -> String {
        format!("{}, {}", self.subjects[column.subject].title, column.kind.title())
    }

    fn operations(&mut self, table: &StoreTable) -> Result<(), String> {
        self.data.start_servers(table.columns.iter().map(|(_, kind)| *kind))?;
        let mut columns: Vec<Column> = table.columns.iter().copied().map(Column::new).collect();
        let titles: Vec<String> = columns.iter().map(|column| self.title(column)).collect();
        let ratios: Vec<&str> = table.ratios.iter().map(|(_, title)| *title).collect();
        println!("| operation | {} | {} |", titles.join(" | "), ratios.join(" | "));
        println!("|---{}|", "|---".repeat(titles.len() + ratios.len()));
        for operation in table.operations {
            eprintln!("{}: {} rounds", operation.title, self.rounds);
            for column in &mut columns {
                column.samples = Samples::default();
            }
            for _ in 0..self.rounds {
                for column in &mut columns {
                    if let Err(reason) = self.measure(operation, column) {
                        eprintln!("  {}: {reason}", self.title(column));
                    }
                }
            }
            let shown: Vec<String> = columns
                .iter()
                .map(|column| match operation.name {
                    "append" | "append32" => rate(&column.samples),
                    _ => column.samples.to_string(),
                })
                .collect();
            let ratios = table
                .ratios
                .iter()
                .map(|(other, _)| ratio(columns[0].samples.ratio(&columns[*other].samples), None));
            let ratios: Vec<String> = ratios.collect();
            println!("| {} | {} | {} |", operation.title, shown.join(" | "), ratios.join(" | "));
        }
        println!();
        Ok(())
    }

    /// Runs an operation once. A store is filled in a process of its own, so that its memory does not count.
    fn measure(&mut self, operation: &Operation, column: &mut Column) -> Result<(), String> {
        let Ok(program) = &self.subjects[column.subject].program else { return Ok(()) };
        let appends = self.sizes.appends;
        let part = match (operation.after, column.filled.take()) {
            (Some(wanted), Some((part, filled_by))) if wanted == filled_by => part,
            (wanted, _) => {
                let part = self.data.new_part(column.kind);
                if let Some(fill) = wanted
                    && column.kind != StoreKind::Memory
                {
                    self.data.run(program, fill, &part, appends)?;
                }
                part
            }
        };
        column.samples.0.push(self.data.run(program, operation.name, &part, appends)?);
        column.filled = Some((part, operation.after.unwrap_or(operation.name)));
        Ok(())
    }

    /// Measures turns with and without a store, with the real CLI and the mock API.
    fn turns(&mut self) -> Result<(), String> {
        let columns = TABLES.iter().flat_map(|table| table.columns).copied();
        let mut columns: Vec<Column> = columns.map(Column::new).collect();
        self.data.start_servers(columns.iter().map(|column| column.kind))?;
        let cli = real_cli::install().map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
        for round in 0..self.rounds {
            eprintln!("turns: round {}", round + 1);
            for column in &mut columns {
                let part = self.data.new_part(column.kind);
                let Ok(program) = &self.subjects[column.subject].program else { continue };
                let script = Script::new().otherwise([Reply::text("Hello.")]);
                let harness = runtime.block_on(Harness::real(script, &cli));
                let harness = harness.map_err(|error| error.to_string())?;
                match turn(&harness, program, &part, self.sizes.turns) {
                    Ok(sample) => column.samples.0.push(sample),
                    Err(reason) => eprintln!("  {}: {reason}", self.title(column)),
                }
            }
        }
        println!("| a turn | without a store | with it | difference | ratio | S3 requests |");
        println!("|---|---|---|---|---|---|");
        for column in &columns {
            // In the samples of turns, `cpu` is the time without a store.
            let median =
                |figure: fn(&Sample) -> f64| column.samples.median(figure).unwrap_or(f64::NAN);
            println!(
                "| {} | {} | {} | {:.2} ms | {:.2} | {} |",
                self.title(column),
                time(median(|sample| sample.cpu)),
                time(median(|sample| sample.wall)),
                median(|sample| sample.wall - sample.cpu) * 1e3,
                median(|sample| sample.wall / sample.cpu),
                match median(|sample| sample.requests) {
                    0.0 => String::new(),
                    requests => format!("{requests:.2}"),
                },
            );
        }
        Ok(())
    }
}

/// Formats the number of appends per second.
fn rate(samples: &Samples) -> String {
    let per_second =
        |sample: &Sample| f64::from(u32::try_from(sample.count).unwrap_or(u32::MAX)) / sample.wall;
    samples.median(per_second).map_or_else(|| "failed".to_owned(), |rate| format!("{rate:.0}/s"))
}

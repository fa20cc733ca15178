//! Rates: differences of two answers to `status`.

use serde_json::{Map, Value as Json, json};

use super::counts;

/// Packets per second from one answer to a later one of the same run, by the same names, and the time between them in seconds.
pub(crate) fn rates(before: &Json, after: &Json) -> Json {
    let seconds = (number(&after["seconds"]) - number(&before["seconds"])).max(f64::MIN_POSITIVE);
    let rate = |before: &Json, after: &Json| Json::from((number(after) - number(before)) / seconds);
    let each = |before: &Json, after: &Json| -> Map<String, Json> {
        let counts = after.as_object().into_iter().flatten().filter(|(_, count)| count.is_u64());
        counts.map(|(name, count)| (name.clone(), rate(&before[name], count))).collect()
    };
    // A port or worker is the same by its place.
    let list = |name: &str, label: &str| -> Vec<Json> {
        let all = after[name].as_array().map_or(&[][..], Vec::as_slice);
        let rates = all.iter().enumerate().map(|(index, after)| {
            let mut rates = each(&before[name][index], after);
            rates.insert(label.to_owned(), after[label].clone());
            Json::Object(rates)
        });
        rates.collect()
    };
    let mut rates = json!({ "seconds": seconds });
    for name in ["packets"].into_iter().chain(counts::run().map(|count| count.name)) {
        rates[name] = rate(&before[name], &after[name]);
    }
    rates["verdicts"] = each(&before["verdicts"], &after["verdicts"]).into();
    let edges = |from: &str| {
        let of =
            |to: &str| each(&before["followed"]["edges"][from][to], &after["followed"]["edges"][from][to]);
        json!({ "programs": of("programs"), "verdicts": of("verdicts") })
    };
    let froms = after["followed"]["edges"].as_object().into_iter().flatten();
    rates["edges"] = froms.map(|(from, _)| (from.clone(), edges(from))).collect::<Map<_, _>>().into();
    rates["ports"] = list("ports", "name").into();
    rates["workers"] = list("workers", "number").into();
    rates
}

fn number(value: &Json) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// A rate in three digits: `7.1`, `12.3K`, `4.56M`.
pub(crate) fn shortened(rate: &Json) -> String {
    let rate = number(rate);
    let (scaled, unit) = match rate {
        1e9.. => (rate / 1e9, "G"),
        1e6.. => (rate / 1e6, "M"),
        1e3.. => (rate / 1e3, "K"),
        _ => (rate, ""),
    };
    match scaled {
        0.0 => "0".to_owned(),
        100.0.. => format!("{scaled:.0}{unit}"),
        10.0.. => format!("{scaled:.1}{unit}"),
        _ => format!("{scaled:.2}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_by_time() {
        let counts = |seconds: f64, packets: u64| {
            json!({
                "packets": packets, "seconds": seconds, "verdicts": { "pass": packets, "drop": 7 },
                "refused": 0, "ports": [{ "name": "null:", "received": packets * 2 }],
                "workers": [{ "number": 3, "packets": packets, "bursts": 1 }],
            })
        };
        let rates = rates(&counts(1.0, 100), &counts(1.5, 600));
        assert_eq!(rates["packets"], 1000.0);
        assert_eq!(rates["verdicts"], json!({ "pass": 1000.0, "drop": 0.0 }));
        assert_eq!(rates["ports"], json!([{ "received": 2000.0, "name": "null:" }]));
        assert_eq!(rates["workers"][0], json!({ "number": 3, "packets": 1000.0, "bursts": 0.0 }));
        let text = |rate: f64| shortened(&rate.into());
        assert_eq!(
            [0.0, 7.13, 999.0, 1234.0, 45_600.0, 4.56e6, 123.4e6].map(text),
            ["0", "7.13", "999", "1.23K", "45.6K", "4.56M", "123M"]
        );
    }
}

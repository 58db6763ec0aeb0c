"""The words the offline model knows: what they ask for, and which of them can't be part of an unknown name."""

from agent.campaigns.dates import MONTHS, NUMBERS, WEEKDAYS
from agent.campaigns.platform import Channel

METRICS: dict[str, str] = {
    "impression": "impressions", "impressions": "impressions", "views": "impressions", "reach": "impressions",
    "click": "clicks", "clicks": "clicks", "traffic": "clicks",
    "ctr": "ctr", "ctrs": "ctr", "click through rate": "ctr", "clickthrough": "ctr", "click rate": "ctr",
    "cpc": "cpc", "cost per click": "cpc", "price per click": "cpc",
    "spend": "spend", "spent": "spend", "spending": "spend", "cost": "spend", "costs": "spend", "spender": "spend",
    "spenders": "spend", "spends": "spend",
    "conversion": "conversions", "conversions": "conversions", "orders": "conversions", "purchases": "conversions",
    "sales": "conversions", "converted": "conversions",
    "conversion rate": "conversion_rate", "cvr": "conversion_rate",
    "cpa": "cpa", "cpas": "cpa", "cost per acquisition": "cpa", "cost per conversion": "cpa", "cost per order": "cpa",
    "cost per sale": "cpa", "acquisition cost": "cpa",
    "revenue": "revenue", "revenues": "revenue", "turnover": "revenue", "income": "revenue", "earned": "revenue",
    "roas": "roas", "return on ad spend": "roas", "return": "roas", "returns": "roas", "roi": "roas",
}  # fmt: skip
"""Phrase to metric; the longest phrase at a place counts."""

LOWER_IS_BETTER = frozenset({"cpc", "cpa"})

BEST = frozenset({"best", "strongest", "winner", "winners", "winning", "star", "stars", "efficient"})
WORST = frozenset(
    {"worst", "weakest", "loser", "losers", "poorest", "underperforming", "underperformers", "wasted", "waste"}
)
MOST = frozenset({"highest", "most", "top", "biggest", "largest", "maximum", "max", "expensive"})
LEAST = frozenset({"lowest", "least", "fewest", "smallest", "bottom", "minimum", "cheapest", "cheap"})
SUPERLATIVES = BEST | WORST | MOST | LEAST

PAUSE = frozenset({"pause", "stop", "halt", "deactivate", "disable", "suspend", "kill", "hold"})
RESUME = frozenset({
    "resume", "unpause", "restart", "reactivate", "enable", "activate", "start", "relaunch", "continue",
})  # fmt: skip
RAISE = frozenset({"raise", "increase", "up", "bump", "boost", "grow", "add", "more", "higher", "lift"})
CUT = frozenset({"lower", "cut", "decrease", "reduce", "drop", "shrink", "trim", "less", "subtract"})
SET = frozenset({"set", "change", "make", "put", "adjust", "update", "move", "give"})
FACTORS = {"double": "2", "triple": "3", "quadruple": "4", "halve": "0.5", "half": "0.5"}
CHANGES = RAISE | CUT | SET | set(FACTORS)

CHANNELS: dict[str, Channel] = {
    "search": "search", "social": "social", "display": "display", "shopping": "shopping", "video": "video", "email": "email",
}  # fmt: skip

REPORTING = frozenset({"said", "says", "wrote", "writes", "told", "reads", "asked", "asks", "claims"})
"""What follows these may be somebody else's words."""

GREETINGS = frozenset(
    {"hi", "hello", "hey", "hiya", "morning", "afternoon", "evening", "howdy", "moin", "hallo", "greetings"}
)
THANKS = frozenset(
    {"thanks", "thank", "thx", "ty", "cheers", "perfect", "great", "awesome", "nice", "excellent", "cool", "danke"}
)
YES = frozenset(
    {"yes", "yep", "yeah", "yup", "sure", "ok", "okay", "confirm", "confirmed", "correct", "right", "exactly"}
)
NO = frozenset({"no", "nope", "nah", "neither"})
OFF_TOPIC = frozenset({
    "weather", "temperature", "rain", "joke", "jokes", "poem", "song", "story", "recipe", "news", "president", "capital",
    "football", "soccer", "game", "match", "movie", "film", "translate", "translation", "horoscope", "lottery", "code",
    "python", "birthday", "restaurant", "lunch", "dinner", "coffee", "flight", "hotel", "music", "sky", "planet", "country",
    "population",
})  # fmt: skip
"""What people ask an assistant of any kind for, and this one can't answer."""
PRONOUNS = frozenset({"it", "them", "those", "these", "that", "this", "they", "its", "their"})
ORDINALS = {
    "first": 0,
    "1st": 0,
    "former": 0,
    "second": 1,
    "2nd": 1,
    "third": 2,
    "3rd": 2,
    "fourth": 3,
    "4th": 3,
    "last": -1,
}
ORDINALS |= {"latter": -1, "fifth": 4, "5th": 4}
COMPARE = frozenset({"compare", "compared", "comparing", "comparison", "vs", "versus", "against", "than"})
TREND = frozenset({"trend", "trends", "trending", "changed", "develop", "developed", "improve", "improved", "growth"})
PERFORM = frozenset({
    "do", "did", "doing", "does", "done", "perform", "performed", "performing", "performs", "performance", "go", "going", "went",
    "results", "result", "numbers", "figures", "stats", "statistics", "metrics", "kpis", "data", "overview", "summary",
    "summarise", "summarize", "breakdown", "fare", "fared", "run", "running", "ran", "look", "looking", "looks", "status",
    "update", "recap", "performances",
})  # fmt: skip
CAMPAIGN = frozenset({
    "campaign", "campaigns", "ad", "ads", "account", "campaing", "campaings", "campain", "campains", "campagin", "campagins",
    "line", "lines", "one", "ones",
})  # fmt: skip
EVERYTHING = frozenset({"all", "every", "everything", "each", "overall", "total", "totals", "whole", "entire"})
ASKING = frozenset({"how", "what", "which", "who", "when", "where", "is", "are", "was", "were", "has", "have", "had", "did", "does",
                    "do", "whats", "hows", "what's", "how's", "any"})  # fmt: skip
SHOWING = frozenset(
    {"show", "give", "tell", "get", "see", "want", "need", "check", "list", "pull", "fetch", "know", "share"}
)
TRIGGERS = (
    PAUSE | RESUME | {"raise", "increase", "bump", "boost", "lower", "cut", "decrease", "reduce", "set", "change", "put", "adjust"}
    | (set(FACTORS) - {"half"}) | {"make", "give", "show", "tell", "list", "compare", "write", "draft", "create", "compose",
    "send", "schedule", "prepare", "generate", "cancel", "how", "what", "which", "who", "why", "what's", "how's", "whats", "hows",
    "turn", "switch", "don't", "dont", "help", "remove", "delete", "should", "thanks", "thank", "is", "are"}
)  # fmt: skip
"""What begins a new request after "and", "then" or a comma."""

POLITE = frozenset({
    "please", "pls", "kindly", "can", "could", "would", "will", "you", "we", "i", "i'd", "id", "like", "want", "to", "need", "let's",
    "lets", "let", "us", "me", "then", "also", "and", "just", "now", "so", "but", "plus", "ok", "okay", "hey", "hi", "hello", "well",
    "too", "go", "ahead", "maybe", "quickly", "next", "afterwards", "finally", "first", "yes", "thanks",
})  # fmt: skip
"""What may stand before a verb without changing what is asked."""

_STOPWORDS = frozenset("""
a about above across after again ago ahead along already also am an and any anyone anything anyway around as aside at away back be
because been before being below between both bring brought but by came can come could currently day days definitely don't dont during either else
even ever exactly far few fewer find for from further general get gets getting good bad got great had half happen happened happening
has have having here him his her hers i if in instead into is its itself just keep kind know let like live lot made make makes many
may maybe me mean might mine month months much must my myself named called near need new next not nothing now of off often on once only
onto or other others our ours out over own paid part past per please point quarter quarters quite rather really regarding rest right
said same say says see seem seen several shall she he should since so some somebody somehow someone something soon still such
sure take taken team than that the their them then there these they thing things think this those through thus till time times to
today together tomorrow too towards under until up upon us use used useful very via want wanted was way we week weeks weekend weekends
well were what whatever when where whether which while who whole whom whose why will with within without won't wont would yesterday yet
you your yours year years please hi thanks daily weekly monthly quarterly budget budgets currently present previous prior preceding
amount euro euros eur usd dollars dollar gbp pounds percent paused active inactive enabled disabled off on turned report reports copy
subject write draft mail emails schedule schedules scheduled summaries help why date better worse improve drop dropped fall
fell rise rose went goes up down again fine okay lately recently moment far question sorry oops actually instead morning evening
describe explain details detail info information figure number level rate rates cost costs price average ranking rank ranked sort sorted
order compare best worst going alone versus vs there's that's it's i'm i've we've we're you're they're isn't aren't doesn't didn't
quick look brief pausing resuming raising cutting doubling running give reason reasons caused cause spend per possible below above unless
report reports undo revert email mail give short long full everyone all business market marketing customer customers client clients boss ceo cmo bot assistant
hmm hm uh um oh ah erm wow lol above below under over exceeding hold money make made earn create delete remove new
table chart list view happy sad ask asked asking tell told show wonder wondering curious interested check checked
track unusual odd strange mtd ytd qtd wtd trailing current fortnight couple earlier later ago same ever
""".split())  # fmt: skip  # noqa: SIM905  (a word list reads better as text)

KNOWN: frozenset[str] = (
    _STOPWORDS
    | {word for phrase in METRICS for word in phrase.split()}
    | SUPERLATIVES | PAUSE | RESUME | CHANGES | set(CHANNELS) | GREETINGS | THANKS | YES | NO | PRONOUNS | set(ORDINALS) | COMPARE
    | TREND | PERFORM | CAMPAIGN | EVERYTHING | ASKING | SHOWING | TRIGGERS | POLITE | set(MONTHS) | {m[:3] for m in MONTHS}
    | set(NUMBERS) | set(WEEKDAYS) | {f"{day}s" for day in WEEKDAYS} | {"q1", "q2", "q3", "q4", "h1", "h2"}
)  # fmt: skip
"""Never taken for a misspelt or unknown campaign name."""

CORRECTED: tuple[str, ...] = (
    *MONTHS, *WEEKDAYS, "yesterday", "today", "quarter", "month", "weekend", "campaign", "campaigns", "performance", "perform",
    "compare", "pause", "resume", "increase", "decrease", "reduce", "budget", "budgets", "revenue", "conversions",
    "impressions", "clicks", "double", "report", "schedule", "newsletter", "previous",
)  # fmt: skip
"""Keywords that are recognised when misspelt."""

TYPOS = {
    "lst": "last", "las": "last", "wek": "week", "weeek": "week", "moth": "month", "yesturday": "yesterday", "yestarday": "yesterday",
    "puase": "pause", "pasue": "pause", "hwo": "how", "teh": "the", "adn": "and", "waht": "what", "thsi": "this", "performace":
    "performance", "tody": "today", "cmpare": "compare",
}  # fmt: skip
"""Misspellings too short or too odd for a measure of likeness."""

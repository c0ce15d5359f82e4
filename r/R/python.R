# What is shared by all functions: the Python library, its errors, and values in both directions.

.confide <- function() {
  if (!confide_available()) {
    stop("the Python library 'confide' was not found. Install it (pip install '.[files]' in a clone of its repository) and tell ",
         "reticulate which Python to use, for example with the environment variable RETICULATE_PYTHON.", call. = FALSE)
  }
  reticulate::import("confide", convert = FALSE)
}

#' Is the Python library there?
#'
#' @return TRUE if the Python library 'confide' can be imported.
#' @export
confide_available <- function() {
  # A folder of this name, such as this package's own, counts as a module of Python too.
  found <- function() reticulate::py_has_attr(reticulate::import("confide", convert = FALSE), "ApproxDP")
  isTRUE(tryCatch(found(), error = function(e) FALSE))
}

# Errors of Python as errors of R: the message alone, without a traceback.
.tell <- function(expression) {
  # Python's warnings become R's. They are given also where the call fails.
  noted <- reticulate::import("warnings", convert = FALSE)
  kept <- noted$catch_warnings(record = TRUE)
  given <- kept$`__enter__`()
  noted$simplefilter("always")
  on.exit({
    kept$`__exit__`(NULL, NULL, NULL)
    for (message in unique(.messages_of(given))) warning(message, call. = FALSE)
  })
  tryCatch(expression, error = function(e) {
    lines <- strsplit(conditionMessage(e), "\n", fixed = TRUE)[[1]]
    lines <- lines[!grepl("^Run `reticulate::py_last_error|^$|^Detailed traceback|^ +File |^Traceback", lines)]
    stop(.in_r_words(sub("^[A-Za-z_.]*(Error|Exceeded): ", "", paste(lines, collapse = "\n"))), call. = FALSE)
  })
}

# The messages of warnings that confide gave; other libraries' are for developers of Python.
.messages_of <- function(given) {
  found <- reticulate::iterate(given, function(each) {
    is_ours <- startsWith(.r(reticulate::py_get_attr(each$category, "__module__")), "confide")
    if (is_ours) .in_r_words(.r(reticulate::py_str(each$message))) else character(0)
  })
  unlist(found)
}

# What Python calls its parameters and values, and what they are called here. The first that fits is taken.
.WORDS <- c(
  "budget=confide\\.ApproxDP\\(([^,()]+), ([^()]+)\\)" = "epsilon = \\1, delta = \\2",
  "(?:budget=)?confide\\.ZCDP\\(([^()]+)\\)" = "rho = \\1",
  "budget=([0-9.]+)" = "epsilon = \\1",
  "confide\\.Ledger\\(limit=([^()]+)\\)" = "confide_ledger(epsilon = \\1)",
  "confide\\.Ledger\\b" = "confide_ledger()",
  "confide\\.Schema\\b|Schema\\.from_toml" = "confide_schema",
  "confide\\.evaluate\\b" = "confide_evaluate()",
  "confide\\.load\\b" = "confide_load()",
  "\\bintervals=True\\b" = "intervals = \"auto\"",
  "`?\\binference_share\\b`?" = "intervals",
  "`budget`" = "epsilon",
  "\\boverwrite=True\\b" = "overwrite = TRUE",
  "\\brandom_state=([0-9]+)" = "random_state = \\1",
  "\\b([a-z_]+)= (?=is not a parameter)" = "\\1 = ",
  "\\b([a-z_]+)=(?=[?.\\s]|$|['\"0-9A-Z(\\[])" = "\\1 = ",
  "\\bNone\\b" = "NULL",
  "\\bTrue\\b" = "TRUE",
  "\\bFalse\\b" = "FALSE",
  "\\b([a-z]+) = true\\b" = "\\1 = TRUE",
  "\\bmust be true, false\\b" = "must be TRUE, FALSE",
  "(?<![A-Za-z])'([A-Za-z0-9_-]+)'" = "\"\\1\""
)

# A message of Python in the words of R. What stands in double quotes, such as the name of a column, stays as it is, but for
# what a schema declares.
.in_r_words <- function(text) {
  text <- gsub('"(missing|other) = true"', "\\1 = TRUE", text)
  parts <- regmatches(text, gregexpr("\"[^\"]*\"", text), invert = NA)[[1]]
  free <- seq_along(parts) %% 2 == 1
  for (pattern in names(.WORDS)) parts[free] <- gsub(pattern, .WORDS[[pattern]], parts[free], perl = TRUE)
  paste(parts, collapse = "")
}

# The question whether a known name was meant, for each name that is not known, as Python asks it.
.unknown <- function(given, known) {
  words <- reticulate::import("confide.known_words", convert = FALSE)
  near <- vapply(given, function(name) .r(words$suggestion(name, as.list(known))), "")
  paste0(given, near, collapse = ", ")
}

.r <- function(value) if (inherits(value, "python.builtin.object")) reticulate::py_to_r(value) else value

# A column as a list of Python, in which a missing cell stays one: NA becomes None in text and NaN in numbers. No value goes
# through NumPy, because old versions of reticulate cannot use NumPy 2.
.column <- function(values) {
  if (is.factor(values) || inherits(values, c("Date", "POSIXt"))) values <- as.character(values)
  if (is.numeric(values)) values <- as.double(values)
  if (length(values) == 1 || (!is.numeric(values) && anyNA(values))) {
    missing <- is.na(values)
    values <- as.list(values)
    if (any(missing)) values[missing] <- if (is.numeric(unlist(values))) list(NaN) else list(NULL)
  }
  reticulate::r_to_py(unname(values))
}

# A vector, or a matrix, from an array of Python.
.vector <- function(array) {
  found <- .r(array$tolist())
  if (is.list(found) && length(found) > 0 && length(found[[1]]) > 1) do.call(rbind, lapply(found, unlist)) else unlist(found)
}

# A pandas frame as a data frame; what is missing there is NA here.
.data_frame <- function(frame) {
  names <- unlist(.r(frame$columns$tolist()))
  columns <- lapply(names, function(name) {
    cells <- .r(frame[name]$tolist())
    cells <- if (is.list(cells)) unlist(lapply(cells, function(cell) if (is.null(cell)) NA else cell)) else cells
    if (is.numeric(cells)) cells[is.nan(cells)] <- NA
    cells
  })
  as.data.frame(stats::setNames(columns, names), optional = TRUE, stringsAsFactors = FALSE)
}

# The columns of a data frame as a pandas frame.
.frame <- function(data, names) {
  if (!is.data.frame(data)) stop("data must be a data frame.", call. = FALSE)
  absent <- setdiff(names, colnames(data))
  if (length(absent) > 0) {
    stop("data lacks columns: ", .unknown(absent, colnames(data)), ".", call. = FALSE)
  }
  pandas <- reticulate::import("pandas", convert = FALSE)
  pandas$DataFrame(reticulate::dict(lapply(data[names], .column)))
}

#' A privacy budget
#'
#' @param epsilon,delta What a release may cost. Without delta it is pure differential privacy, with delta approximate.
#' @param rho In place of epsilon: zero-concentrated differential privacy.
#' @return A budget of the Python library.
#' @examples
#' if (confide_available()) print(confide_budget(epsilon = 1, delta = 1e-6))
#' @export
confide_budget <- function(epsilon = NULL, delta = NULL, rho = NULL) {
  if (is.null(epsilon) == is.null(rho)) stop("give epsilon, or rho.", call. = FALSE)
  confide <- .confide()
  if (!is.null(rho)) {
    if (!is.null(delta)) stop("rho has no delta; give epsilon and delta, or rho alone.", call. = FALSE)
    return(.tell(confide$ZCDP(rho)))
  }
  if (is.null(delta)) .tell(confide$PureDP(epsilon)) else .tell(confide$ApproxDP(epsilon, delta))
}

# Parameters for Python: whole numbers as integers, since R writes 2 for 2.0.
.whole <- function(parameters) {
  lapply(parameters, function(value) {
    is_whole <- is.double(value) && all(is.finite(value) & value == round(value) & abs(value) < 1e9)
    if (is_whole) as.integer(value) else value
  })
}

# What is shared by all functions: the Python library, its errors, and values in both directions.

.confide <- function() {
  if (!confide_available()) {
    stop("the Python library 'confide' was not found. Install it (pip install confide) and tell reticulate which Python ",
         "to use, for example with the environment variable RETICULATE_PYTHON.", call. = FALSE)
  }
  reticulate::import("confide", convert = FALSE)
}

#' Is the Python library there?
#'
#' @return TRUE if the Python library 'confide' can be imported.
#' @export
confide_available <- function() {
  isTRUE(tryCatch(reticulate::py_module_available("confide"), error = function(e) FALSE))
}

# Errors of Python as errors of R: the message alone, without a traceback.
.tell <- function(expression) {
  tryCatch(expression, error = function(e) {
    lines <- strsplit(conditionMessage(e), "\n", fixed = TRUE)[[1]]
    lines <- lines[!grepl("^Run `reticulate::py_last_error|^$|^Detailed traceback|^ +File |^Traceback", lines)]
    stop(sub("^[A-Za-z_.]*(Error|Exceeded): ", "", paste(lines, collapse = "\n")), call. = FALSE)
  })
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
    stop("data lacks columns: ", paste(absent, collapse = ", "), ".", call. = FALSE)
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
    is_whole <- is.double(value) && length(value) == 1 && is.finite(value) && value == round(value) && abs(value) < 1e9
    if (is_whole) as.integer(value) else value
  })
}

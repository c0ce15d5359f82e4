#' A ledger of what was spent on one body of data
#'
#' All releases from the same rows are charged to one ledger, which refuses what would exceed its limit. It is a file that
#' R, Python and the command line share.
#'
#' @param path The file. With a limit it is made if it is missing; without one it must exist. NULL: in memory.
#' @param epsilon,delta,rho The limit, as in confide_budget(); none to open a ledger that exists.
#' @param ... Further parameters of the ledger in Python, such as neighbours = "replace-one".
#' @return An object of class confide_ledger. summary() gives its charges as a data frame.
#' @examples
#' if (confide_available()) confide_ledger(epsilon = 2)
#' @export
confide_ledger <- function(path = NULL, epsilon = NULL, delta = NULL, rho = NULL, ...) {
  confide <- .confide()
  limit <- if (is.null(epsilon) && is.null(rho)) NULL else confide_budget(epsilon, delta, rho)
  path <- if (is.null(path)) NULL else path.expand(path)
  structure(list(python = .tell(do.call(confide$Ledger, c(list(path, limit = limit), .whole(list(...)))))), class = "confide_ledger")
}

.ledger_of <- function(ledger) {
  if (is.null(ledger)) return(NULL)
  if (is.character(ledger)) return(confide_ledger(ledger)$python)
  if (!inherits(ledger, "confide_ledger")) stop("ledger must come from confide_ledger(), or be its path.", call. = FALSE)
  ledger$python
}

.text <- function(value) .r(reticulate::py_str(value))

#' @export
print.confide_ledger <- function(x, ...) {
  cat("Ledger of confide\n  limit  ", .text(x$python$limit), "\n  spent  ", .text(.tell(x$python$spent())),
      "\n  left   ", .text(.tell(x$python$remaining())), "\n", sep = "")
  invisible(x)
}

#' @export
summary.confide_ledger <- function(object, ...) {
  .data_frame(.tell(object$python$entries()))
}

#' How good a model is on private rows
#'
#' One noisy histogram of scores by class is released and charged. Everything that is shown is computed from it.
#'
#' @param object A model from confide_fit().
#' @param data A data frame of rows from which the model did not learn, with the column of the target.
#' @param epsilon,delta,rho What the counts cost.
#' @param ledger As in confide_fit().
#' @param ... Further parameters of confide.evaluate in Python, such as level = 0.9 or n_bins = 10.
#' @return An object of class confide_evaluation: a data frame of rates with their intervals.
#' @export
confide_evaluate <- function(object, data, epsilon = NULL, delta = NULL, rho = NULL, ledger = NULL, ...) {
  python <- .python(object)
  rows <- .frame(data, c(.columns_of(python$schema), .exposure_of(python$schema)))
  labels <- .column(data[[object$response]])
  budget <- confide_budget(epsilon, delta, rho)
  given <- c(list(python, rows, labels, budget = budget, ledger = .ledger_of(ledger)), .whole(list(...)))
  found <- .tell(do.call(.confide()$evaluate, given))
  rates <- .data_frame(found$to_frame()$reset_index())
  structure(rates, text = .text(found), class = c("confide_evaluation", "data.frame"))
}

#' @export
print.confide_evaluation <- function(x, ...) {
  cat(attr(x, "text"), "\n", sep = "")
  invisible(x)
}

/* Standard C is declared in one place. */
#include <tench.h>

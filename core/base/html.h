// Text from outside, made fit for a page.
#ifndef MERGEKERNEL_CORE_BASE_HTML_H_
#define MERGEKERNEL_CORE_BASE_HTML_H_

#include <string>
#include <string_view>

namespace mk {

// With &, <, > and " escaped, and '?' for every byte that is not printable ASCII: names may be no
// UTF-8 and hold anything.
std::string HtmlText(std::string_view text);

}  // namespace mk

#endif  // MERGEKERNEL_CORE_BASE_HTML_H_

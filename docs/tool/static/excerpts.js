/* excerpts.js -- on the search page: below each result that Sphinx finds, the words around the first match. Sphinx would fetch
 * each page for that, which a browser does not do for pages that were opened as files: texts.js, which is loaded as a script, has
 * the text of all. */
(function () {
    function escaped(text) {
        return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    }
    function excerpt(text, words) {
        var low = text.toLowerCase(), at = -1;
        words.forEach(function (word) {
            var found = low.indexOf(word);
            if (found >= 0 && (at < 0 || found < at)) at = found;
        });
        if (at < 0) at = 0;
        var from = Math.max(0, at - 80), to = Math.min(text.length, at + 160);
        var out = escaped(text.slice(from, to));
        words.forEach(function (word) {
            var pattern = escaped(word).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
            if (word.length > 1) out = out.replace(new RegExp(pattern + "(?![^<]*>)", "gi"), "<b>$&</b>");
        });
        return (from ? "... " : "") + out + (to < text.length ? " ..." : "");
    }
    function show(results, words) {
        var items = results.querySelectorAll("ul.search > li");
        for (var i = 0; i < items.length; i++) {
            var link = items[i].querySelector("a");
            if (!link || items[i].querySelector("p.excerpt")) continue;
            var page = link.getAttribute("href").split("#")[0].split("?")[0].replace(/^\.\//, "").replace(/\.html$/, "");
            var text = window.TERN_TEXTS[page];
            if (!text) continue;
            var p = document.createElement("p");
            p.className = "excerpt";
            p.innerHTML = excerpt(text, words);
            items[i].appendChild(p);
        }
    }
    document.addEventListener("DOMContentLoaded", function () {
        var results = document.getElementById("search-results");
        var query = new URLSearchParams(window.location.search).get("q");
        if (!results || !query || typeof MutationObserver === "undefined") return;
        var words = query.toLowerCase().split(/\s+/).filter(function (word) { return word.length > 0; });
        var script = document.createElement("script");
        script.src = "_static/texts.js";
        script.onload = function () {
            show(results, words);
            new MutationObserver(function () { show(results, words); }).observe(results, {childList: true, subtree: true});
        };
        document.body.appendChild(script);
    });
})();

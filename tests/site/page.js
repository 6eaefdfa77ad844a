/* page.js -- as much of a browser as the search page of the site asks for, opened as a file: elements that remember what was put
 * into them, timers that run at once, and no other file can be fetched. What follows it is the page's own scripts, then shown(). */
var links = [], fetched = [], late = [], ready = [];
function Element(name) {
    this.name = name;
    this.children = [];
    this.dataset = {};
    this.style = {};
    this.classList = { add: function () {}, remove: function () {} };
    this.innerText = this.innerHTML = this.value = "";
    if (name === "a") links.push(this);
}
Element.prototype = {
    append: function () { this.children.push.apply(this.children, arguments); },
    appendChild: function (x) { this.children.push(x); return x; },
    insertAdjacentElement: function (where, x) { return x; },
    getAttribute: function (name) { return name === "data-url_root" || name === "data-content_root" ? "./" : null; },
    setAttribute: function () {},
    addEventListener: function () {},
    remove: function () {},
    removeChild: function () {},
    querySelector: function () { return null; },
    querySelectorAll: function () { return []; },
};
Object.defineProperty(Element.prototype, "href", {
    get: function () { return this.to || ""; },
    set: function (to) { this.to = to; },
});
var elements = {};
var document = {
    readyState: "loading",
    body: new Element("body"),
    currentScript: new Element("script"),
    documentElement: new Element("html"),
    createElement: function (name) { return new Element(name); },
    createTextNode: function (text) { return text; },
    getElementById: function (id) { return elements[id] || (elements[id] = new Element(id)); },
    querySelector: function () { return null; },
    querySelectorAll: function () { return []; },
    addEventListener: function (what, f) { if (what === "DOMContentLoaded") ready.push(f); },
};
document.documentElement.dataset.content_root = "./";
var setTimeout = function (f) { late.push(f); };
var window = {
    location: { search: "?q=" + encodeURIComponent(QUERY), href: "file:///search.html", protocol: "file:" },
    setInterval: function () { return 1; },
    clearInterval: function () {},
    setTimeout: setTimeout,
    addEventListener: function () {},
};
var setInterval = window.setInterval, clearInterval = window.clearInterval;
var URLSearchParams = function () { this.get = function (name) { return name === "q" ? QUERY : null; }; };
var localStorage = { getItem: function () { return null; }, setItem: function () {}, removeItem: function () {} };
var navigator = { userAgent: "", language: "en" };
/* As a browser refuses it of a file. */
var nothing = { then: function () { return nothing; }, catch: function () { return nothing; } };
var fetch = function (what) { fetched.push(what); return nothing; };
function shown(say) {
    document.readyState = "complete";
    ready.forEach(function (f) { f(); });
    for (var i = 0; i < 100000 && late.length; i++) late.shift()();
    links.forEach(function (x) { if (x.href) say(x.href); });
}

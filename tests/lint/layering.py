"""Who includes whom: modules.txt for our modules, headers.txt for everybody else's headers, CMake's USES."""

import re
from pathlib import PurePosixPath


def check(tree):
    yield from check_table(tree.table)
    for file in tree.files:
        yield from check_includes(tree, file)
    yield from check_cmake(tree)


def check_table(table):
    """The table itself: known names, no cycle, control and compute apart."""
    for path, names in table.may_use.items():
        for name in names or []:
            if name != "proto" and name not in table.path_of:
                yield f"tests/lint/modules.txt: {path} names '{name}', which is no module"
                continue
            groups = {path.split("/")[0], table.path_of.get(name, "proto").split("/")[0]}
            if groups == {"control", "compute"}:
                yield f"tests/lint/modules.txt: {path} uses {name}: control and compute meet in contract alone"
    done, active = set(), []

    def visit(path):
        if path in active:
            return " -> ".join(active[active.index(path) :] + [path])
        if path in done:
            return None
        active.append(path)
        for name in table.may_use.get(path) or []:
            cycle = name in table.path_of and visit(table.path_of[name])
            if cycle:
                return cycle
        active.pop()
        done.add(path)
        return None

    for path in table.may_use:
        cycle = visit(path)
        if cycle:
            yield f"tests/lint/modules.txt: cycle {cycle}"
            return


def check_includes(tree, file):
    module = tree.table.module_of_path(file.path)
    if module is None:
        if file.path.startswith(("src/", "include/")):
            yield f"{file.path}: lies in no module of tests/lint/modules.txt"
        return
    allowed = tree.table.may_use[module]
    for line, header, quoted in file.includes():
        where = f"{file.path}:{line}"
        used = tree.table.module_of_header(header) if quoted else None
        if quoted and used is None:
            yield from check_private(tree, file, where, header)
        elif used and used != module and allowed is not None and used.split("/")[-1] not in allowed:
            yield f"{where}: {module} may not include \"{header}\" (tests/lint/modules.txt)"
        if not quoted:
            yield from check_foreign(tree, file, module, where, header)


def check_private(tree, file, where, header):
    """A private header stands in the includer's own module; public headers know none."""
    if file.path.startswith("include/"):
        yield f"{where}: a public header may not include the private \"{header}\""
        return
    module = tree.table.module_of_path(file.path)
    home = "kernels" if module == "kernels" else "src/" + module
    folders = [str(f) for f in PurePosixPath(file.path).parents if str(f) == home or home in map(str, f.parents)]
    stands = any(f"{folder}/{header}" in tree.paths for folder in folders)
    generated = header.endswith(".inc") or any(f"{folder}/{header}.in" in tree.templates for folder in folders)
    if ".." in header or not (stands or generated):
        yield f"{where}: \"{header}\" is no header of {module}"


def check_foreign(tree, file, module, where, header):
    for pattern, places in tree.header_rules:
        if re.search(pattern, header) and not any(allows(place, file.path, module) for place in places):
            yield f"{where}: <{header}> may not be included here (tests/lint/headers.txt: {pattern})"


def allows(place, path, module):
    """A place is a module, a group or a path with *."""
    if place.startswith("!"):
        return False
    return module == place or module.split("/")[0] == place or PurePosixPath(path).match(place)


def parse_header_rules(text):
    rules = []
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            pattern, _, places = line.partition(" : ")
            rules.append((pattern.strip(), places.split()))
    return rules


def check_cmake(tree):
    """USES of each omnibus_module(): allowed by the table, and naming what the module's files include."""
    for path, text in tree.cmake_lists.items():
        for call in re.findall(r"omnibus_module\(([^)]*)\)", re.sub(r"#[^\n]*", "", text)):
            words = call.split()
            module = words[0]
            if path not in (f"src/{module}/CMakeLists.txt", f"{module}/CMakeLists.txt"):
                yield f"{path}: declares the module {module}, which is not this folder"
            if module not in tree.table.may_use:
                continue  # a part of server or kernels: its includes are judged by path
            allowed = tree.table.may_use[module]
            uses = cmake_uses(words[1:])
            for name in uses:
                if allowed is not None and name not in allowed:
                    yield f"{path}: {module} USES {name}, which tests/lint/modules.txt does not allow"
            for name in sorted(included_modules(tree, module) - uses):
                yield f"{path}: {module} includes headers of {name}, but its USES does not name it"


def cmake_uses(words):
    uses, section = set(), None
    for word in words:
        if word in ("SUBDIRS", "USES", "LINK", "PRIVATE_LINK"):
            section = word
        elif section == "USES":
            uses.add(word)
        elif word.startswith("omnibus_"):
            uses.add(word[len("omnibus_") :])
    return {"kernels" if name.startswith("kernels") else name for name in uses}


def included_modules(tree, module):
    out = set()
    for file in tree.files:
        if tree.table.module_of_path(file.path) != module:
            continue
        for _, header, quoted in file.includes():
            used = tree.table.module_of_header(header) if quoted else None
            if used and used != module and not used.startswith("unknown:"):
                out.add(used.split("/")[-1])
    return out

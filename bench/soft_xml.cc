// SPDX-License-Identifier: MIT
// soft_xml FILE ROUNDS: reads an XML file with pugixml, searches it, changes it and writes it, each ROUNDS times.
#include "pugixml.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

int main(int argc, char **argv)
{
    double sum = 0;
    size_t bytes = 0;

    for (int i = 0; argc > 2 && i < std::atoi(argv[2]); i++) {
        pugi::xml_document document;
        std::ostringstream text;

        if (!document.load_file(argv[1]))
            return 1;
        for (pugi::xml_node item : document.child("items").children("item")) {
            sum += item.child("price").text().as_double();
            item.append_attribute("seen") = i;
        }
        sum += static_cast<double>(document.select_nodes("//item[@id > 100]/price[@cur='EUR']").size());
        document.save(text, "  ");
        bytes += text.str().size();
    }
    std::printf("%.2f %zu\n", sum, bytes);
    return 0;
}

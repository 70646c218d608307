import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;

/** Anonymize a table by ARX: Anonymize TABLE HIERARCHIES OUTPUT K LIMIT COLUMN... prints levels and loss as JSON. */
public class Anonymize {
    public static void main(String[] arguments) throws Exception {
        Charset utf8 = StandardCharsets.UTF_8;
        List<String> columns = Arrays.asList(arguments).subList(5, arguments.length);
        Data data = Data.create(arguments[0], utf8, ';');
        for (int i = 0; i < data.getHandle().getNumColumns(); i++) {
            String name = data.getHandle().getAttributeName(i);
            data.getDefinition().setAttributeType(name, AttributeType.INSENSITIVE_ATTRIBUTE);
        }
        for (String name : columns) {
            data.getDefinition().setAttributeType(name, Hierarchy.create(arguments[1] + "/" + name + ".csv", utf8, ';'));
        }
        ARXConfiguration configuration = ARXConfiguration.create();
        configuration.addPrivacyModel(new KAnonymity(Integer.parseInt(arguments[3])));
        configuration.setSuppressionLimit(Double.parseDouble(arguments[4]));
        configuration.setQualityModel(Metric.createLossMetric());
        ARXAnonymizer anonymizer = new ARXAnonymizer();
        anonymizer.setHistorySize(200);
        ARXResult result = anonymizer.anonymize(data, configuration);
        result.getOutput(false).save(arguments[2], ';');
        ARXNode best = result.getGlobalOptimum();
        String levels = columns.stream().map(name -> "\"" + name + "\": " + best.getGeneralization(name))
                .collect(Collectors.joining(", "));
        System.out.printf("{\"levels\": {%s}, \"loss\": %s, \"search_seconds\": %s}%n",
                levels, best.getHighestScore(), result.getTime() / 1000.0);
    }
}
